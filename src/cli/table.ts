/** meta/v1 Table, as the server sends it. */
export interface Table {
  columnDefinitions: { name: string; priority: number }[];
  rows: { cells: unknown[] }[];
}

/** Rows of text in columns as kubectl prints them: upper-case heads, three spaces between. */
export function formatTable(table: Table, options: { wide?: boolean; noHeaders?: boolean } = {}): string {
  const shown = table.columnDefinitions.flatMap((column, i) => (column.priority === 0 || options.wide ? [i] : []));
  const head = shown.map((i) => table.columnDefinitions[i]!.name.toUpperCase());
  const rows = table.rows.map((row) => shown.map((i) => cellText(row.cells[i])));
  return formatColumns(options.noHeaders ? rows : [head, ...rows]);
}

/** Left-aligned columns, three spaces between, no space at line ends. */
export function formatColumns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  }
  const line = (row: readonly string[]) =>
    row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i]! + 3))).join("");
  return rows.map((row) => `${line(row)}\n`).join("");
}

function cellText(cell: unknown): string {
  return cell === null || cell === undefined || cell === "" ? "<none>" : String(cell);
}
