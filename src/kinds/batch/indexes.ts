/** How many indexes a text such as `1,3-5,7` names, or what is wrong with it; all must be below `completions`. */
export function countIndexes(text: string, completions: number): number | string {
  if (text === "") return 0;
  let last: number | undefined;
  let total = 0;
  for (const fragment of text.split(",")) {
    const interval = readInterval(fragment, completions);
    if (typeof interval === "string") return interval;
    const [first, end] = interval;
    if (last !== undefined && last >= first) return `non-increasing order, previous: ${last}, current: ${first}`;
    total += end - first + 1;
    last = end;
  }
  return total;
}

function readInterval(fragment: string, completions: number): [number, number] | string {
  const parts = fragment.split("-");
  if (parts.length > 2) {
    return `the fragment ${JSON.stringify(fragment)} violates the requirement that an index interval can have at most two parts separated by '-'`;
  }
  for (const part of parts) {
    if (!/^[+]?\d+$/.test(part)) return `cannot convert string to integer for index: ${JSON.stringify(part)}`;
    if (Number(part) >= completions) return `too large index: ${JSON.stringify(part)}`;
  }
  const [first, end] = [Number(parts[0]), Number(parts[1] ?? parts[0])];
  if (parts.length === 2 && first >= end) return `non-increasing order, previous: ${first}, current: ${end}`;
  return [first, end];
}
