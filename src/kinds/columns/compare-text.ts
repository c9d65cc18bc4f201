/** Order of bytes, as Go sorts strings; for `Array.sort`. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
