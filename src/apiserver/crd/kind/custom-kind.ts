import { createJsonPath, deepClone, printValue } from "#base";
import {
  type ApiObject,
  apiVersionOf,
  type CustomResourceDefinition,
  type CustomResourceDefinitionVersion,
  type KindInfo,
  type SubresourceInfo,
} from "#kinds";
import { setDefaults, specifiesDefaults } from "../schema/default.ts";
import type { JsonSchema } from "../schema/json-schema.ts";
import { prune } from "../schema/prune.ts";
import { customColumns } from "./columns.ts";
import { customDecoder } from "./decode.ts";
import { customScale } from "./scale.ts";
import { createCustomStrategy } from "./strategy.ts";

const VERBS = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/** While a definition goes, its objects can be read and deleted only. */
const LAST_VERBS = VERBS.filter((verb) => verb !== "create");
const SUBRESOURCE_VERBS = ["get", "patch", "update"];

export interface CustomKindOptions {
  /** Aborted when this kind is served no more, or in another way. */
  readonly retired: AbortSignal;
  /** Where versions differ in more than their name: what a webhook makes of them. */
  readonly convert?: KindInfo["convert"];
}

/** Schema of a version: where it has none, everything is kept. */
export function schemaOfVersion(version: CustomResourceDefinitionVersion): JsonSchema {
  return (
    (version.schema?.openAPIV3Schema as JsonSchema | undefined) ?? { "x-kubernetes-preserve-unknown-fields": true }
  );
}

/** OpenAPI name of a custom resource: the group turned around, `com.example.v1.Foo`. */
export function customSchemaName(group: string, version: string, kind: string): string {
  return `${group.split(".").reverse().join(".")}.${version}.${kind}`;
}

/** The kind that one version of a definition serves. Names are those that were accepted. */
export function customKind(
  definition: CustomResourceDefinition,
  version: CustomResourceDefinitionVersion,
  options: CustomKindOptions,
): KindInfo {
  const { spec, status } = definition;
  const names = status?.acceptedNames ?? spec.names;
  const stored = spec.versions.find(({ storage }) => storage) ?? version;
  const schema = schemaOfVersion(version);
  const subresources = version.subresources ?? undefined;
  const terminating = status?.conditions?.some(({ type, status: value }) => type === "Terminating" && value === "True");
  const place = { group: spec.group, version: version.name };
  return {
    ...place,
    resource: names.plural,
    kind: names.kind,
    namespaced: spec.scope === "Namespaced",
    listKind: names.listKind ?? `${names.kind}List`,
    singular: names.singular ?? names.kind.toLowerCase(),
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    verbs: terminating ? LAST_VERBS : VERBS,
    subresources: subresourcesOf(names.kind, subresources),
    storage: { group: spec.group, resource: names.plural, version: stored.name },
    customSchema: schema,
    schema: customSchemaName(spec.group, version.name, names.kind),
    strategy: createCustomStrategy({ kind: names.kind, namespaced: spec.scope === "Namespaced", schema, subresources }),
    columns: customColumns(version.additionalPrinterColumns),
    decode: customDecoder(schema),
    retired: options.retired,
    // what a webhook converts has the form of this version when it is read
    fromStorage: reader(place, schema, options.convert ? schema : schemaOfVersion(stored)),
    ...(stored.name === version.name
      ? {}
      : { toStorage: (object: ApiObject) => ({ ...object, apiVersion: `${spec.group}/${stored.name}` }) }),
    ...(options.convert ? { convert: options.convert } : {}),
    ...(subresources?.scale ? { scale: customScale(subresources.scale) } : {}),
    ...selectable(version),
    ...(version.deprecated ? { deprecation: deprecationOf(place, names.kind, version) } : {}),
  };
}

function subresourcesOf(
  kind: string,
  subresources: CustomResourceDefinitionVersion["subresources"],
): SubresourceInfo[] {
  return [
    ...(subresources?.status ? [{ name: "status", kind, verbs: SUBRESOURCE_VERBS }] : []),
    ...(subresources?.scale
      ? [{ name: "scale", kind: "Scale", group: "autoscaling", version: "v1", verbs: SUBRESOURCE_VERBS }]
      : []),
  ];
}

/**
 * Objects as they are read: what the stored version's schema doesn't know is gone, what has a default and is missing is there.
 * An object that needs nothing is given as it is.
 */
function reader(place: { group: string; version: string }, schema: JsonSchema, storedSchema: JsonSchema) {
  const apiVersion = apiVersionOf(place);
  const defaults = specifiesDefaults(schema);
  return (stored: ApiObject): ApiObject => {
    const copy = deepClone<ApiObject>(stored);
    const pruned = prune(copy, storedSchema);
    const renamed = stored.apiVersion !== apiVersion;
    if (renamed) copy.apiVersion = apiVersion;
    if (defaults) {
      setDefaults(copy, schema);
      return copy;
    }
    return renamed || pruned.length > 0 ? copy : stored;
  };
}

function selectable({ selectableFields }: CustomResourceDefinitionVersion): Pick<KindInfo, "selectableFields"> {
  if (!selectableFields?.length) return {};
  const fields = selectableFields.map(({ jsonPath }) => ({
    name: jsonPath.replace(/^\./, ""),
    path: createJsonPath(`{${jsonPath}}`),
  }));
  return {
    selectableFields: (object) =>
      Object.fromEntries(
        fields.map(({ name, path }) => {
          const [value] = path.find(object)[0] ?? [];
          return [name, value === undefined || value === null ? "" : printValue(value)];
        }),
      ),
  };
}

function deprecationOf(
  place: { group: string; version: string },
  kind: string,
  { deprecationWarning }: CustomResourceDefinitionVersion,
): string {
  return deprecationWarning ?? `${apiVersionOf(place)} ${kind} is deprecated`;
}
