import { type ApiObject, badRequest, type KindInfo } from "#kinds";
import type { Accepted } from "./accept.ts";

/** How much of the object a Table's row carries. */
export type IncludeObject = "None" | "Metadata" | "Object";

export function includeObjectOf(query: URLSearchParams): IncludeObject {
  const value = query.get("includeObject") || "Metadata";
  if (value !== "None" && value !== "Metadata" && value !== "Object")
    throw badRequest(`unrecognized includeObject value: ${JSON.stringify(value)}`);
  return value;
}

export interface TableOptions {
  readonly accepted: Accepted;
  readonly include: IncludeObject;
  readonly now: number;
  /** Watches give the definitions with the first event only. */
  readonly headless?: boolean;
}

/** A meta/v1 Table of objects. */
export function tableOf(
  kind: KindInfo,
  objects: readonly ApiObject[],
  metadata: object,
  options: TableOptions,
): Record<string, unknown> {
  const columnDefinitions = kind.columns.map(({ name, type, format, description, priority }) => ({
    name,
    type,
    format,
    description,
    priority,
  }));
  return {
    kind: "Table",
    apiVersion: `meta.k8s.io/${options.accepted.metaVersion}`,
    metadata,
    columnDefinitions: options.headless ? [] : columnDefinitions,
    rows: objects.map((object) => rowOf(kind, object, options)),
  };
}

function rowOf(kind: KindInfo, object: ApiObject, { include, now, accepted }: TableOptions): Record<string, unknown> {
  const cells = kind.columns.map((column) => column.cell(object, now));
  if (include === "None") return { cells, object: null };
  return { cells, object: include === "Object" ? object : metadataOnly(object, accepted.metaVersion) };
}

/** PartialObjectMetadata */
export function metadataOnly(object: ApiObject, metaVersion: string): ApiObject {
  return { kind: "PartialObjectMetadata", apiVersion: `meta.k8s.io/${metaVersion}`, metadata: object.metadata };
}
