import { BlockList, isIPv4 } from "node:net";

/** Whether an address is in one of the ranges (`10.0.0.0/16`). */
export function rangesOf(cidrs: readonly string[] = []): (address: string) => boolean {
  const family = (address: string) => (isIPv4(address) ? "ipv4" : "ipv6");
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = "", bits = ""] = cidr.split("/");
    list.addSubnet(address, Number(bits), family(address));
  }
  return (address) => list.check(address, family(address));
}
