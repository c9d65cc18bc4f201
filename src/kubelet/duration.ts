/** A duration as Go prints it (`10s`, `1m20s`, `2h0m0s`, `250ms`, `1.5s`, `0s`): Kubernetes' messages carry such. */
export function goDuration(ms: number): string {
  if (ms === 0) return "0s";
  if (ms < 1000) return `${trim(ms)}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor(ms / 60_000) % 60;
  const seconds = trim((ms % 60_000) / 1000);
  if (hours > 0) return `${hours}h${minutes}m${seconds}s`;
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`;
}

const trim = (value: number): string => String(Number(value.toFixed(3)));
