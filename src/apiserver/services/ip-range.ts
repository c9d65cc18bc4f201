/** IPv4 addresses as numbers. */
export function ipToNumber(ip: string): number | undefined {
  const parts = ip.split(".");
  if (parts.length !== 4 || parts.some((part) => !/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255))
    return undefined;
  return parts.reduce((sum, part) => sum * 256 + Number(part), 0);
}

export function numberToIp(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
}

/** First and last address of `10.0.0.0/16` that may be given out: neither the network's own nor its last. */
export function rangeOf(cidr: string): { first: number; last: number } {
  const [base = "", bits = ""] = cidr.split("/");
  const start = ipToNumber(base);
  if (start === undefined || !/^\d+$/.test(bits) || Number(bits) > 30) throw new Error(`not an IPv4 range: ${cidr}`);
  const size = 2 ** (32 - Number(bits));
  const first = Math.floor(start / size) * size;
  return { first: first + 1, last: first + size - 2 };
}
