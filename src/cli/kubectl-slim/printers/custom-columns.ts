import { createJsonPath, type JsonPath } from "#base";
import type { ApiObject } from "#kinds";
import { CommandError } from "../errors.ts";
import { alignTabs, LIST_TABS } from "./tab-writer.ts";

export interface CustomColumn {
  readonly header: string;
  readonly path: JsonPath;
}

/** `NAME:.metadata.name,IMAGE:.spec.containers[*].image`. @throws CommandError in kubectl's words */
export function parseCustomColumns(spec: string): CustomColumn[] {
  if (spec === "") throw new CommandError("custom-columns format specified but no custom columns given");
  return spec.split(",").map((part) => {
    const colon = part.indexOf(":");
    if (colon < 0)
      throw new CommandError(`unexpected custom-columns spec: ${part}, expected <header>:<json-path-expr>`);
    return { header: part.slice(0, colon), path: createJsonPath(part.slice(colon + 1), { relaxed: true }) };
  });
}

/** The two lines of a columns file: headers, then paths. */
export function parseColumnsFile(text: string): CustomColumn[] {
  const [headers = "", paths = ""] = text.split("\n");
  const words = paths.trim().split(/\s+/);
  return headers
    .trim()
    .split(/\s+/)
    .map((header, i) => ({ header, path: createJsonPath(words[i] ?? "", { relaxed: true }) }));
}

export function printCustomColumns(
  columns: readonly CustomColumn[],
  objects: readonly ApiObject[],
  noHeaders: boolean,
): string {
  const lines = noHeaders ? [] : [columns.map(({ header }) => header).join("\t")];
  for (const object of objects) lines.push(columns.map(({ path }) => valuesText(path.find(object).flat())).join("\t"));
  return alignTabs(`${lines.join("\n")}\n`, LIST_TABS);
}

const valuesText = (values: readonly unknown[]) => (values.length === 0 ? "<none>" : values.map(goValue).join(","));

/** A value as Go's `%v` prints it: `map[a:1]`, `[x y]`. */
export function goValue(value: unknown): string {
  if (value === null || value === undefined) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(goValue).join(" ")}]`;
  if (typeof value !== "object") return String(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `map[${entries.map(([key, inner]) => `${key}:${goValue(inner)}`).join(" ")}]`;
}
