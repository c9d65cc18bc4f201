import { EngineError } from "../../errors.ts";

/** Hands out the IPv4 addresses of one CIDR. What is in use is told by the sandboxes' own records, so nothing else is stored. */
export interface AddressPool {
  /** The next free address, not one that was given back a moment ago. @throws EngineError `sandbox-failed` when none is left */
  take(): string;
  /** Marks an address that a sandbox of an earlier run has. */
  mark(address: string): void;
  giveBack(address: string): void;
}

export function createAddressPool(cidr: string): AddressPool {
  const { base, size } = parseCIDR(cidr);
  const used = new Set<number>();
  let last = 1; // .0 is the network and .1 is kept for the host's side
  return {
    take() {
      for (let tried = 0; tried < size; tried++) {
        last = last + 1 >= size - 1 ? 2 : last + 1;
        if (used.has(last)) continue;
        used.add(last);
        return format(base + last);
      }
      throw new EngineError("sandbox-failed", `no free address is left in the pod CIDR ${cidr}`, {
        hint: "delete pods or choose a larger pod CIDR",
      });
    },
    mark(address) {
      const offset = parse(address) - base;
      if (offset < 0 || offset >= size) return;
      used.add(offset);
      last = Math.max(last, offset);
    },
    giveBack: (address) => void used.delete(parse(address) - base),
  };
}

function parseCIDR(cidr: string): { base: number; size: number } {
  const match = /^(\d+\.\d+\.\d+\.\d+)\/(\d+)$/.exec(cidr);
  const bits = Number(match?.[2]);
  if (!match || bits < 8 || bits > 29)
    throw new EngineError("invalid-config", `pod CIDR ${JSON.stringify(cidr)} is not an IPv4 range between /8 and /29`);
  const size = 2 ** (32 - bits);
  return { base: Math.floor(parse(match[1]!) / size) * size, size };
}

function parse(address: string): number {
  return address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}

function format(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
}
