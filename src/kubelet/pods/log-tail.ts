/** Contents of whole CRI log lines (`time stream F|P text`), each with its line end unless it was split. */
export function splitLogLines(raw: string): string[] {
  const lines: string[] = [];
  for (const line of raw.split("\n")) {
    const match = /^\S+ (?:stdout|stderr) ([FP])(?::\S*)? (.*)$/s.exec(line);
    if (match) lines.push(match[1] === "P" ? (match[2] ?? "") : `${match[2] ?? ""}\n`);
  }
  return lines;
}
