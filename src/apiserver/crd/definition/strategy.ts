import { deepClone } from "#base";
import type { ApiObject, CustomResourceDefinition, FieldError, Strategy } from "#kinds";
import { withCondition } from "../conditions.ts";
import { cleanSchema } from "../schema/clean.ts";
import { isKnownFormat } from "../schema/formats.ts";
import { type JsonSchema, visitSchema } from "../schema/json-schema.ts";
import { validateDefinition, validateDefinitionUpdate } from "./validate.ts";

const definition = (object: ApiObject): CustomResourceDefinition => object as unknown as CustomResourceDefinition;

/** What creating, changing and deleting a CustomResourceDefinition means beyond what all kinds share. */
export function definitionStrategy(base: Strategy): Strategy {
  return {
    ...base,
    setDefaults(object) {
      base.setDefaults(object);
      for (const { schema } of definition(object).spec.versions)
        if (schema?.openAPIV3Schema) cleanSchema(schema.openAPIV3Schema as JsonSchema);
    },
    prepareForCreate(object) {
      base.prepareForCreate(object);
      const { storedVersions = [] } = definition(object).status ?? {};
      object.status = { conditions: null, acceptedNames: { plural: "", kind: "" }, storedVersions };
    },
    prepareForUpdate(object, old, subresource) {
      base.prepareForUpdate(object, old, subresource);
      if (subresource !== "status") keepStoredVersion(definition(object));
    },
    prepareForDelete(object, now) {
      const { metadata } = object;
      const finalizer = "customresourcecleanup.apiextensions.k8s.io";
      if (!metadata.finalizers?.includes(finalizer)) metadata.finalizers = [...(metadata.finalizers ?? []), finalizer];
      const { status } = definition(object);
      const condition = {
        type: "Terminating",
        status: "True",
        reason: "InstanceDeletionPending",
        message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
      };
      object.status = { ...status, conditions: withCondition(status?.conditions, condition, now) };
    },
    validate: (object) => [...base.validate(object), ...validateDefinition(definition(object))],
    validateUpdate(object, old, subresource): FieldError[] {
      const errors = base.validateUpdate(object, old, subresource);
      // the end of a definition is not held up by rules that are newer than it
      if (subresource === "status" || object.metadata.deletionTimestamp) return errors;
      return [...errors, ...validateDefinitionUpdate(definition(object), definition(old))];
    },
    warnings: (object, old) => [...base.warnings(object, old), ...(old ? [] : unknownFormats(definition(object)))],
  };
}

/** A version that is stored from now on joins those that may be found in the store. */
function keepStoredVersion({ spec, status }: CustomResourceDefinition): void {
  const stored = spec.versions.find(({ storage }) => storage)?.name;
  if (!stored || !status || status.storedVersions?.includes(stored)) return;
  status.storedVersions = [...deepClone<string[]>(status.storedVersions ?? []), stored];
}

function unknownFormats({ spec }: CustomResourceDefinition): string[] {
  const found = new Set<string>();
  for (const { schema } of spec.versions) {
    if (!schema?.openAPIV3Schema) continue;
    visitSchema(schema.openAPIV3Schema as JsonSchema, "", ({ type, format }) => {
      if (format && !isKnownFormat(type, format)) found.add(format);
    });
  }
  return [...found].sort().map((format) => `unrecognized format ${JSON.stringify(format)}`);
}
