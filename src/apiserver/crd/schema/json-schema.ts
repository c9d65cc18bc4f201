/** A CustomResourceDefinition's schema (JSONSchemaProps), as it stands in `spec.versions[*].schema.openAPIV3Schema`. */
export interface JsonSchema {
  readonly id?: string;
  readonly $ref?: string;
  readonly $schema?: string;
  readonly description?: string;
  readonly title?: string;
  readonly type?: string;
  readonly format?: string;
  readonly default?: unknown;
  readonly example?: unknown;
  readonly externalDocs?: unknown;
  readonly nullable?: boolean;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly maximum?: number;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema | readonly JsonSchema[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly additionalItems?: JsonSchema | boolean;
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
  readonly dependencies?: Readonly<Record<string, JsonSchema | readonly string[]>>;
  readonly definitions?: Readonly<Record<string, JsonSchema>>;
  readonly allOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly not?: JsonSchema;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
  readonly "x-kubernetes-embedded-resource"?: boolean;
  readonly "x-kubernetes-int-or-string"?: boolean;
  readonly "x-kubernetes-list-type"?: string;
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-map-type"?: string;
  readonly "x-kubernetes-validations"?: readonly ValidationRule[];
}

export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const preserves = (schema: JsonSchema): boolean => schema["x-kubernetes-preserve-unknown-fields"] === true;
export const isEmbedded = (schema: JsonSchema): boolean => schema["x-kubernetes-embedded-resource"] === true;
export const isIntOrString = (schema: JsonSchema): boolean => schema["x-kubernetes-int-or-string"] === true;

/** Schema of an array's items, where it is one for all. */
export function itemsOf(schema: JsonSchema | undefined): JsonSchema | undefined {
  return schema?.items && !Array.isArray(schema.items) ? (schema.items as JsonSchema) : undefined;
}

/** Schema of a map's values; undefined also for `true` and `false`. */
export function valuesOf(schema: JsonSchema | undefined): JsonSchema | undefined {
  return typeof schema?.additionalProperties === "object" ? schema.additionalProperties : undefined;
}

/** Schema of a field: its own, or that of all values of a map. */
export function fieldOf(schema: JsonSchema | undefined, name: string): JsonSchema | undefined {
  return propertyOf(schema, name) ?? valuesOf(schema);
}

export function propertyOf(schema: JsonSchema | undefined, name: string): JsonSchema | undefined {
  return schema?.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
}

/** `spec.replicas` */
export const child = (path: string, name: string): string => (path ? `${path}.${name}` : name);

/** The root has the metadata of an object, as embedded resources have. */
export function asRoot(schema: JsonSchema): JsonSchema {
  return isEmbedded(schema) ? schema : { ...schema, "x-kubernetes-embedded-resource": true };
}

/** Calls `visit` for a schema and all in it, with paths like `spec.properties[a].items`. */
export function visitSchema(schema: JsonSchema, path: string, visit: (schema: JsonSchema, path: string) => void): void {
  visit(schema, path);
  for (const [name, one] of Object.entries(schema.properties ?? {}))
    visitSchema(one, `${path}.properties[${name}]`, visit);
  const values = valuesOf(schema);
  if (values) visitSchema(values, `${path}.additionalProperties`, visit);
  const items = itemsOf(schema);
  if (items) visitSchema(items, `${path}.items`, visit);
  for (const name of ["allOf", "anyOf", "oneOf"] as const)
    for (const [i, one] of (schema[name] ?? []).entries()) visitSchema(one, `${path}.${name}[${i}]`, visit);
  if (schema.not) visitSchema(schema.not, `${path}.not`, visit);
}
