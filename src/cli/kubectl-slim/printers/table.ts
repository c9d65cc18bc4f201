import type { ApiObject } from "#kinds";
import { alignTabs, LIST_TABS } from "./tab-writer.ts";

/** meta.k8s.io/v1 Table. */
export interface Table {
  kind: "Table";
  metadata?: { resourceVersion?: string; continue?: string };
  columnDefinitions: { name: string; priority?: number; type?: string; format?: string }[];
  rows: TableRow[];
}

export interface TableRow {
  cells: unknown[];
  object?: ApiObject;
}

export interface TableOptions {
  readonly wide?: boolean;
  readonly noHeaders?: boolean;
  readonly withNamespace?: boolean;
  readonly showLabels?: boolean;
  readonly labelColumns?: readonly string[];
  /** `deployment.apps/`, before every name. */
  readonly namePrefix?: string;
  /** The first column is the watch event's type. */
  readonly events?: readonly string[];
}

/** Lines of a table with tabs between cells, as the server means them. */
export function tableLines(table: Table, options: TableOptions = {}): string {
  const shown = table.columnDefinitions.flatMap((column, i) =>
    (column.priority ?? 0) === 0 || options.wide ? [i] : [],
  );
  const nameAt = table.columnDefinitions.findIndex(({ name, format }) => format === "name" || name === "Name");
  const lines: string[] = [];
  if (!options.noHeaders && table.columnDefinitions.length > 0) {
    lines.push(
      [
        ...(options.events ? ["EVENT"] : []),
        ...(options.withNamespace ? ["NAMESPACE"] : []),
        ...shown.map((i) => table.columnDefinitions[i]!.name.toUpperCase()),
        ...(options.labelColumns ?? []).map((label) => label.slice(label.lastIndexOf("/") + 1).toUpperCase()),
        ...(options.showLabels ? ["LABELS"] : []),
      ].join("\t"),
    );
  }
  table.rows.forEach((row, number) => {
    const metadata = row.object?.metadata;
    const labels = metadata?.labels ?? {};
    lines.push(
      [
        ...(options.events ? [options.events[number] ?? ""] : []),
        ...(options.withNamespace ? [metadata?.namespace ?? ""] : []),
        ...shown.map((i) => `${i === nameAt ? (options.namePrefix ?? "") : ""}${cellText(row.cells[i])}`),
        ...(options.labelColumns ?? []).map((label) => labels[label] ?? ""),
        ...(options.showLabels ? [labelText(labels)] : []),
      ].join("\t"),
    );
  });
  return lines.length > 0 ? `${lines.join("\n")}\n` : "";
}

export function printTable(table: Table, options: TableOptions = {}, remembered?: number[]): string {
  return alignTabs(tableLines(table, options), LIST_TABS, remembered);
}

/** A cell is one line: what stands behind a line break is cut. */
function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) return "";
  const text = typeof cell === "string" ? cell : typeof cell === "object" ? JSON.stringify(cell) : String(cell);
  const end = text.search(/[\f\n\r]/);
  return (end < 0 ? text : `${text.slice(0, end)}...`).replaceAll("\x1b", "^[");
}

export function labelText(labels: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(labels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return pairs.length === 0 ? "<none>" : pairs.map(([key, value]) => `${key}=${value}`).join(",");
}
