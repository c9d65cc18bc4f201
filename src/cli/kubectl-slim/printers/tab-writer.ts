export interface TabOptions {
  readonly minWidth: number;
  readonly padding: number;
}

/** For lists, as `kubectl get` has them. */
export const LIST_TABS: TabOptions = { minWidth: 6, padding: 3 };
/** For `kubectl describe`. */
export const DESCRIBE_TABS: TabOptions = { minWidth: 0, padding: 2 };

/**
 * Aligns text whose cells end with tabs, as Go's text/tabwriter does: a column is a run of lines that have a cell there; what
 * stands behind the last tab of a line belongs to no column. `remembered` widths, of earlier output, are the least ones.
 */
export function alignTabs(text: string, options: TabOptions, remembered?: number[]): string {
  const ended = text.endsWith("\n");
  const lines = (ended ? text.slice(0, -1) : text).split("\n").map((line) => line.split("\t"));
  const widths: number[] = [];
  const out: string[] = lines.map(() => "");

  const write = (from: number, to: number) => {
    for (let i = from; i < to; i++)
      out[i] = lines[i]!.map((cell, j) => (j < widths.length ? pad(cell, widths[j]!) : cell)).join("");
  };
  const format = (from: number, to: number) => {
    const column = widths.length;
    let done = from;
    for (let i = from; i < to; i++) {
      if (column >= lines[i]!.length - 1) continue;
      write(done, i);
      let end = i;
      let width = Math.max(options.minWidth, remembered?.[column] ?? 0);
      for (; end < to && column < lines[end]!.length - 1; end++)
        width = Math.max(width, lengthOf(lines[end]![column]!) + options.padding);
      if (remembered) remembered[column] = width;
      widths.push(width);
      format(i, end);
      widths.pop();
      done = end;
      i = end - 1;
    }
    write(done, to);
  };
  format(0, lines.length);
  return `${out.join("\n")}${ended ? "\n" : ""}`;
}

const lengthOf = (cell: string) => [...cell].length;
const pad = (cell: string, width: number) => cell + " ".repeat(Math.max(0, width - lengthOf(cell)));
