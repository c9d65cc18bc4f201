import { LineCounter, parseAllDocuments, type Tags } from "yaml";
import { CodedError } from "#base";
import type { ApiObject } from "#kinds";

/**
 * As kubectl reads YAML: version 1.1, in which `0644` is octal, `yes` is true and `<<` merges; but times and numbers with colons
 * stay texts.
 */
const LIKE_KUBECTL = {
  version: "1.1",
  customTags: (tags: Tags) =>
    tags.filter(
      (tag) =>
        typeof tag !== "object" ||
        (tag.tag !== "tag:yaml.org,2002:timestamp" && !("format" in tag && tag.format === "TIME")),
    ),
} as const;

/** Objects of a YAML or JSON text with any number of documents; `List`s are taken apart. @throws CodedError `invalid-manifest` */
export function parseManifest(text: string, source: string): ApiObject[] {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { ...LIKE_KUBECTL, lineCounter: lines, uniqueKeys: true });
  const objects: ApiObject[] = [];
  for (const document of Array.isArray(documents) ? documents : []) {
    const [error] = document.errors;
    if (error) throw invalid(source, `line ${error.linePos?.[0].line ?? "?"}: ${error.message.split("\n")[0]}`);
    // aliases that expand without bounds are refused by the parser
    const value: unknown = document.toJS({ maxAliasCount: 1000 });
    if (value === null || value === undefined) continue;
    const { line } = lines.linePos(document.range?.[0] ?? 0);
    objects.push(...objectsOf(value, source, line));
  }
  return objects;
}

function objectsOf(value: unknown, source: string, line: number): ApiObject[] {
  const object = value as Partial<ApiObject> & { items?: unknown[] };
  if (typeof value !== "object" || Array.isArray(value)) throw invalid(source, `line ${line}: a document is no object`);
  if (typeof object.apiVersion !== "string" || !object.apiVersion)
    throw invalid(source, `line ${line}: apiVersion not set`);
  if (typeof object.kind !== "string" || !object.kind) throw invalid(source, `line ${line}: kind not set`);
  if (object.kind.endsWith("List") && Array.isArray(object.items))
    return object.items.flatMap((item) => objectsOf(item, source, line));
  return [object as ApiObject];
}

function invalid(source: string, why: string): CodedError {
  return new CodedError("invalid-manifest", `error parsing ${source}: ${why}`);
}
