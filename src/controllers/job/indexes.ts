/** Indexes of a Job in the text form of its status: `1,3-5,7`. What is not below `completions` is left out. */
export function parseIndexes(text: string | undefined, completions: number): Set<number> {
  const result = new Set<number>();
  for (const part of text ? text.split(",") : []) {
    const [first, last = first] = part.split("-").map(Number);
    if (first === undefined || last === undefined || Number.isNaN(first) || Number.isNaN(last)) continue;
    for (let index = first; index <= Math.min(last, completions - 1); index++) result.add(index);
  }
  return result;
}

export function formatIndexes(indexes: Iterable<number>): string {
  const parts: string[] = [];
  let first = Number.NaN;
  let last = Number.NaN;
  const close = () => {
    if (Number.isNaN(first)) return;
    parts.push(first === last ? `${first}` : last === first + 1 ? `${first},${last}` : `${first}-${last}`);
  };
  for (const index of [...indexes].sort((a, b) => a - b)) {
    if (index === last + 1) {
      last = index;
      continue;
    }
    close();
    first = index;
    last = index;
  }
  close();
  return parts.join(",");
}
