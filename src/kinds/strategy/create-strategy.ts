import { deepClone, deepEqual } from "#base";
import type { KindRow } from "../kind-table.ts";
import type { ApiObject } from "../object.ts";
import { normalizeObject } from "../schema/normalize.ts";
import { schemaOf } from "../schema/schema.ts";
import type { Strategy } from "../scheme.ts";
import { nameIsDNSSubdomain } from "../validation/names.ts";
import { validateObjectMeta, validateObjectMetaUpdate } from "../validation/object-meta.ts";
import type { KindRules } from "./rules.ts";

/** The strategy of a built-in kind: what all kinds share, and the kind's own rules in between. */
export function createStrategy(row: KindRow, schemaName: string, rules: KindRules): Strategy {
  const hasStatus =
    row.subresources.some(({ name }) => name === "status") && (schemaOf(schemaName)?.fields.has("status") ?? false);
  return {
    allowCreateOnUpdate: rules.allowCreateOnUpdate ?? false,
    allowUnconditionalUpdate: !rules.conditionalUpdateOnly,
    defaultDeletionPropagation: rules.defaultDeletionPropagation ?? "Background",
    setDefaults(object) {
      normalizeObject(object, schemaName);
      rules.defaults?.(object);
    },
    prepareForCreate(object) {
      if (hasStatus && !rules.statusOnCreate) delete object.status;
      normalizeObject(object, schemaName);
      if (rules.generation) object.metadata.generation = 1;
      else delete object.metadata.generation;
      rules.prepareForCreate?.(object);
    },
    prepareForUpdate(object, old, subresource) {
      keepSystemMetadata(object, old);
      if (subresource === "status") keepAllButStatus(object, old);
      else if (hasStatus && !rules.restoresStatus) keepField(object, old, "status");
      rules.prepareForUpdate?.(object, old, subresource);
      if (rules.generation && subresource !== "status" && !sameSpec(object, old)) {
        object.metadata.generation = (old.metadata.generation ?? 0) + 1;
      }
    },
    validate: (object) => [
      ...validateObjectMeta(object.metadata, row.namespaced, rules.nameCheck ?? nameIsDNSSubdomain),
      ...(rules.validate?.(object) ?? []),
    ],
    validateUpdate: (object, old, subresource) => [
      ...validateObjectMetaUpdate(object.metadata, old.metadata),
      ...(rules.validateUpdate
        ? rules.validateUpdate(object, old, subresource)
        : subresource === ""
          ? (rules.validate?.(object) ?? [])
          : []),
    ],
    warnings: (object, old) => rules.warnings?.(object, old) ?? [],
    ...(rules.gracePeriodSeconds
      ? { gracePeriodSeconds: (object, requested) => rules.gracePeriodSeconds!(object, requested) }
      : {}),
  };
}

/** What the server itself owns: an update that leaves it out keeps it, one that changes it fails in validation. */
function keepSystemMetadata(object: ApiObject, old: ApiObject): void {
  const { metadata } = object;
  if (old.metadata.generation === undefined) delete metadata.generation;
  else metadata.generation = old.metadata.generation;
  if (!metadata.uid && old.metadata.uid) metadata.uid = old.metadata.uid;
  if (old.metadata.creationTimestamp) {
    metadata.creationTimestamp = old.metadata.creationTimestamp;
  }
  if (!metadata.deletionTimestamp && old.metadata.deletionTimestamp) {
    metadata.deletionTimestamp = old.metadata.deletionTimestamp;
  }
  if (metadata.deletionGracePeriodSeconds === undefined && old.metadata.deletionGracePeriodSeconds !== undefined) {
    metadata.deletionGracePeriodSeconds = old.metadata.deletionGracePeriodSeconds;
  }
}

/** Sets a field to what it was. */
export function keepField(object: ApiObject, old: ApiObject, name: string): void {
  if (old[name] === undefined) delete object[name];
  else object[name] = deepClone(old[name]);
}

function keepAllButStatus(object: ApiObject, old: ApiObject): void {
  for (const name of new Set([...Object.keys(object), ...Object.keys(old)])) {
    if (name !== "status" && name !== "metadata") keepField(object, old, name);
  }
}

/** True when nothing but metadata and status differs. */
function sameSpec(object: ApiObject, old: ApiObject): boolean {
  for (const name of new Set([...Object.keys(object), ...Object.keys(old)])) {
    if (name !== "status" && name !== "metadata" && !deepEqual(object[name], old[name])) return false;
  }
  return true;
}
