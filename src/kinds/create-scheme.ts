import { defaultColumns } from "./columns/column.ts";
import { type Conversion, conversions, convertedColumns, convertedStrategy } from "./conversions.ts";
import { type KindRow, kindTable } from "./kind-table.ts";
import { type ApiObject, apiVersionOf } from "./object.ts";
import { builtInRules } from "./rules.ts";
import type { KindInfo, Scheme } from "./scheme.ts";
import { normalizeObject } from "./schema/normalize.ts";
import { createStrategy } from "./strategy/create-strategy.ts";

/** A scheme that custom resources are added to and removed from while the server runs. */
export interface MutableScheme extends Scheme {
  /** Adds a kind, in place of one that is served at the same group, version and resource. */
  add(kind: KindInfo): void;
  remove(group: string, version: string, resource: string): void;
  /** Called after every `add` and `remove`. */
  onChange(listener: () => void): Disposable;
}

/** All built-in kinds of Kubernetes v1.36. */
export function createScheme(): MutableScheme {
  const kinds = new Map<string, KindInfo>();
  const byKind = new Map<string, KindInfo>();
  const listeners = new Set<() => void>();
  let list: readonly KindInfo[] | undefined;
  const put = (kind: KindInfo) => {
    kinds.set(placeOf(kind.group, kind.version, kind.resource), kind);
    byKind.set(`${apiVersionOf(kind)}/${kind.kind}`, kind);
    list = undefined;
  };
  const drop = (group: string, version: string, resource: string) => {
    const kind = kinds.get(placeOf(group, version, resource));
    if (!kind) return;
    kinds.delete(placeOf(group, version, resource));
    byKind.delete(`${apiVersionOf(kind)}/${kind.kind}`);
    list = undefined;
  };
  const changed = () => {
    for (const listener of listeners) listener();
  };
  for (const kind of builtInKinds()) put(kind);
  return {
    all() {
      list ??= [...kinds.values()];
      return list;
    },
    byResource: (group, version, resource) => kinds.get(placeOf(group, version, resource)),
    byKind: (apiVersion, kind) => byKind.get(`${apiVersion}/${kind}`),
    add(kind) {
      drop(kind.group, kind.version, kind.resource);
      put(kind);
      changed();
    },
    remove(group, version, resource) {
      drop(group, version, resource);
      changed();
    },
    onChange(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
  };
}

const placeOf = (group: string, version: string, resource: string): string => `${group}/${version}/${resource}`;

function builtInKinds(): KindInfo[] {
  return kindTable.map(kindInfoOf);
}

function kindInfoOf(row: KindRow): KindInfo {
  const schema = schemaNameOf(row.group, row.version, row.kind);
  const conversion = conversions[`${row.group}/${row.version}/${row.kind}`];
  if (conversion) return convertedKind(row, schema, conversion);
  const rules = builtInRules[`${row.group}/${row.kind}`] ?? {};
  return {
    ...row,
    listKind: `${row.kind}List`,
    schema,
    storage: { group: row.group, resource: row.resource, version: row.version },
    strategy: createStrategy(row, schema, rules),
    columns: rules.columns ?? defaultColumns,
    ...(rules.selectableFields ? { selectableFields: (object) => rules.selectableFields!(object) } : {}),
  };
}

function convertedKind(row: KindRow, schema: string, conversion: Conversion): KindInfo {
  const { storage } = conversion;
  const stored = kindInfoOf(
    kindTable.find(
      ({ group, resource, version }) =>
        group === storage.group && resource === storage.resource && version === storage.version,
    )!,
  );
  const setDefaults = (object: ApiObject) => {
    normalizeObject(object, schema);
    const internal = conversion.toStorage(object);
    stored.strategy.setDefaults(internal);
    Object.assign(object, conversion.fromStorage(internal));
    normalizeObject(object, schema);
  };
  return {
    ...row,
    listKind: `${row.kind}List`,
    schema,
    ...conversion,
    strategy: convertedStrategy(stored.strategy, conversion, setDefaults),
    columns: convertedColumns(stored.columns, conversion),
    ...(stored.selectableFields
      ? {
          selectableFields: (object: ApiObject) =>
            conversion.fieldsOf?.(object) ?? stored.selectableFields!(conversion.toStorage(object)),
        }
      : {}),
  };
}

/** OpenAPI name of a built-in kind's schema. */
export function schemaNameOf(group: string, version: string, kind: string): string {
  if (group === "apiextensions.k8s.io")
    return `io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.${version}.${kind}`;
  if (group === "apiregistration.k8s.io") return `io.k8s.kube-aggregator.pkg.apis.apiregistration.${version}.${kind}`;
  return `io.k8s.api.${group === "" ? "core" : group.split(".")[0]}.${version}.${kind}`;
}
