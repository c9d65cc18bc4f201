/** What a client is told on the error stream of a forwarded connection. */
export function forwardError(port: number, why: string): string {
  return why.startsWith("error forwarding port") ? why : `error forwarding port ${port} to pod: ${why}`;
}
