import { createJsonPath, printValue } from "#base";
import {
  type ApiObject,
  type Column,
  column,
  type CustomResourceColumnDefinition,
  defaultColumns,
  humanDuration,
} from "#kinds";

const NAME = defaultColumns[0]!;
const AGE = "Custom resource definition column (in JSONPath format): .metadata.creationTimestamp";

/** The columns of a custom resource's Table: Name, then those that its definition names, or Age. */
export function customColumns(definitions: readonly CustomResourceColumnDefinition[] | undefined): Column[] {
  const named = (definitions ?? []).map(customColumn);
  if (named.length > 0) return [NAME, ...named];
  return [
    NAME,
    column<ApiObject>("Age", (object, now) => age(object.metadata.creationTimestamp, now), {
      type: "date",
      description: AGE,
    }),
  ];
}

function customColumn(definition: CustomResourceColumnDefinition): Column {
  const path = createJsonPath(`{${definition.jsonPath}}`);
  const type = definition.type as Column["type"];
  return {
    name: definition.name,
    type,
    format: definition.format ?? "",
    description:
      definition.description || `Custom resource definition column (in JSONPath format): ${definition.jsonPath}`,
    priority: definition.priority ?? 0,
    cell(object, now) {
      const [results = []] = path.find(object);
      return results.length === 0 ? null : cellOf(type, results[0], now);
    },
  };
}

/** A value that doesn't fit its column is shown as nothing. */
function cellOf(type: Column["type"], value: unknown, now: number): unknown {
  if (value === null || value === undefined) return type === "string" && value === null ? "<nil>" : null;
  switch (type) {
    case "string":
      return printValue(value);
    case "integer":
      return typeof value === "number" ? Math.trunc(value) : null;
    case "number":
      return typeof value === "number" ? value : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date":
      return typeof value === "string" ? age(value, now) : null;
  }
}

function age(timestamp: string | null | undefined, now: number): string {
  if (!timestamp) return "<unknown>";
  const time = Date.parse(timestamp);
  return Number.isNaN(time) ? "<invalid>" : humanDuration(now - time);
}
