import { deepClone, deepEqual } from "#base";
import {
  type ApiObject,
  type CustomResourceSubresources,
  type FieldError,
  fieldError,
  isQualifiedName,
  nameIsDNSSubdomain,
  type Strategy,
  validateObjectMeta,
  validateObjectMetaUpdate,
} from "#kinds";
import { createCelBudget } from "../../cel/mod.ts";
import { runRules } from "../rules/run.ts";
import { dropNulls, setDefaults } from "../schema/default.ts";
import type { JsonSchema } from "../schema/json-schema.ts";
import { validateListTypes } from "../schema/list-types.ts";
import { validateEmbedded } from "../schema/metadata.ts";
import { validateValue } from "../schema/validate-value.ts";
import { validateScale } from "./scale.ts";

export interface CustomStrategyOptions {
  readonly kind: string;
  readonly namespaced: boolean;
  readonly schema: JsonSchema;
  readonly subresources: CustomResourceSubresources | undefined;
}

/** What creating and changing custom resources of one version means. */
export function createCustomStrategy({ kind, namespaced, schema, subresources }: CustomStrategyOptions): Strategy {
  const hasStatus = subresources?.status !== undefined && subresources.status !== null;
  const scale = subresources?.scale ?? undefined;
  // violations in unchanged parts, found by validateUpdate and told by warnings
  const ratcheted = new WeakMap<ApiObject, readonly string[]>();
  const finish = (object: ApiObject, old: ApiObject | undefined, errors: FieldError[]): FieldError[] => {
    if (errors.some(isBlocking)) return [...errors, NOT_CHECKED];
    const found = runRules(object, schema, old, createCelBudget());
    ratcheted.set(object, found.warnings);
    return [...errors, ...found.errors];
  };
  return {
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: false,
    defaultDeletionPropagation: "Background",
    setDefaults(object) {
      dropNulls(object, schema);
      setDefaults(object, schema);
    },
    prepareForCreate(object) {
      if (hasStatus) delete object.status;
      object.metadata.generation = 1;
    },
    prepareForUpdate(object, old, subresource) {
      if (subresource === "status") return keepAllButStatus(object, old);
      keepSystemMetadata(object, old);
      if (hasStatus) {
        if (old.status === undefined) delete object.status;
        else object.status = deepClone(old.status);
      }
      if (!sameButMetadata(object, old)) object.metadata.generation = (old.metadata.generation ?? 0) + 1;
    },
    validate(object) {
      if (object.kind !== kind) return [fieldError.invalid("kind", object.kind, `must be ${kind}`)];
      const errors = [
        ...validateObjectMeta(object.metadata, namespaced, nameIsDNSSubdomain),
        ...validateValue(object, schema),
        ...(scale ? validateScale(object, scale, false) : []),
        ...validateEmbedded(object, schema),
        ...validateListTypes(object, schema),
      ];
      return finish(object, undefined, errors);
    },
    validateUpdate(object, old, subresource) {
      if (object.kind !== kind) return [fieldError.invalid("kind", object.kind, `must be ${kind}`)];
      const status = subresource === "status";
      const errors = [
        ...validateObjectMetaUpdate(object.metadata, old.metadata),
        ...(status ? validateStatus(object, old, schema) : validateValue(object, schema, "", old)),
        ...(scale ? validateScale(object, scale, status) : []),
        ...(status ? [] : validateEmbedded(object, schema)),
        ...(validateListTypes(old, schema).length > 0 ? [] : validateListTypes(object, schema)),
      ];
      return finish(object, old, errors);
    },
    warnings: (object, old) => [...(ratcheted.get(object) ?? []), ...finalizerWarnings(object, old)],
  };
}

const BLOCKING = new Set<FieldError["reason"]>([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
]);
const isBlocking = ({ reason }: FieldError): boolean => BLOCKING.has(reason);
const NOT_CHECKED: FieldError = fieldError.invalid(
  "<nil>",
  null,
  "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
);

function validateStatus(object: ApiObject, old: ApiObject, schema: JsonSchema): FieldError[] {
  const status = schema.properties?.status;
  if (!status || object.status === undefined) return [];
  return validateValue(object.status, status, "", old.status).map((error) => ({
    ...error,
    field: error.field === "<nil>" ? "status" : `status.${error.field}`,
  }));
}

/** The status changes and nothing else, metadata neither. */
function keepAllButStatus(object: ApiObject, old: ApiObject): void {
  const { status } = object;
  const { managedFields } = object.metadata;
  for (const name of Object.keys(object)) delete object[name];
  Object.assign(object, deepClone<ApiObject>(old));
  if (status === undefined) delete object.status;
  else object.status = status;
  if (managedFields) object.metadata.managedFields = managedFields;
}

function keepSystemMetadata({ metadata }: ApiObject, old: ApiObject): void {
  for (const name of ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] as const) {
    if (metadata[name] === undefined && old.metadata[name] !== undefined)
      Object.assign(metadata, { [name]: old.metadata[name] });
  }
  if (old.metadata.generation === undefined) delete metadata.generation;
  else metadata.generation = old.metadata.generation;
}

function sameButMetadata(object: ApiObject, old: ApiObject): boolean {
  return deepEqual({ ...object, metadata: undefined }, { ...old, metadata: undefined });
}

const STANDARD_FINALIZERS = new Set(["orphan", "foregroundDeletion", "kubernetes"]);

function finalizerWarnings(object: ApiObject, old: ApiObject | undefined): string[] {
  const added = (object.metadata.finalizers ?? []).filter((name) => !old?.metadata.finalizers?.includes(name));
  return added.sort().flatMap((name) => {
    const at = `metadata.finalizers: ${JSON.stringify(name)}: `;
    const texts = isQualifiedName(name).map((text) => at + text);
    if (name.includes("/") || STANDARD_FINALIZERS.has(name)) return texts;
    const path = name.includes(".") ? " including a path (/)" : "";
    return [
      ...texts,
      `${at}prefer a domain-qualified finalizer name${path} to avoid accidental conflicts with other finalizer writers`,
    ];
  });
}
