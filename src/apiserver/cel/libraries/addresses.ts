import { BlockList, isIP, isIPv6 } from "node:net";
import type { Environment } from "@marcbachmann/cel-js";
import { comparableType, functions, namespace, TextValue } from "./register.ts";

const IP_TYPE = "net.IP";
const CIDR_TYPE = "net.CIDR";

/** An address in canonical form. */
export class IpAddress extends TextValue {
  get family(): "ipv4" | "ipv6" {
    return isIPv6(this.text) ? "ipv6" : "ipv4";
  }
}

/** A network, its address kept as it was given. */
export class Cidr extends TextValue {
  readonly address: IpAddress;
  readonly bits: number;
  constructor(address: IpAddress, bits: number) {
    super(`${address.text}/${bits}`);
    this.address = address;
    this.bits = bits;
  }
}

/** https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-ip-address-library and -cidr-library */
export function registerAddresses(env: Environment): void {
  comparableType(env, IP_TYPE, IpAddress, (a, b) => a.text === b.text);
  comparableType(env, CIDR_TYPE, Cidr, (a, b) => a.text === b.text);
  namespace(env, "ip", "IpNamespace");
  const inside =
    (...networks: string[]) =>
    (ip: IpAddress) =>
      networks.some((network) => contains(parseCidr(network), ip));
  const isGlobal = (ip: IpAddress) =>
    !inside(
      "0.0.0.0/32",
      "::/128",
      "127.0.0.0/8",
      "::1/128",
      "224.0.0.0/4",
      "ff00::/8",
      "169.254.0.0/16",
      "fe80::/10",
    )(ip) && ip.text !== "255.255.255.255";
  functions(env, {
    [`ip(string): ${IP_TYPE}`]: parseIp,
    "isIP(string): bool": (text: string) => succeeds(() => parseIp(text)),
    "IpNamespace.isCanonical(string): bool": (_: unknown, text: string) => parseIp(text).text === text,
    [`${IP_TYPE}.family(): int`]: (ip: IpAddress) => (ip.family === "ipv4" ? 4n : 6n),
    [`${IP_TYPE}.isUnspecified(): bool`]: inside("0.0.0.0/32", "::/128"),
    [`${IP_TYPE}.isLoopback(): bool`]: inside("127.0.0.0/8", "::1/128"),
    [`${IP_TYPE}.isLinkLocalMulticast(): bool`]: inside("224.0.0.0/24", "ff02::/16"),
    [`${IP_TYPE}.isLinkLocalUnicast(): bool`]: inside("169.254.0.0/16", "fe80::/10"),
    [`${IP_TYPE}.isGlobalUnicast(): bool`]: isGlobal,
    [`string(${IP_TYPE}): string`]: (ip: IpAddress) => ip.text,
    [`cidr(string): ${CIDR_TYPE}`]: (text: string) => cidrOf(text),
    "isCIDR(string): bool": (text: string) => succeeds(() => parseCidr(text)),
    [`${CIDR_TYPE}.containsIP(string): bool`]: (cidr: Cidr, text: string) => contains(cidr, parseIp(text)),
    [`${CIDR_TYPE}.containsIP(${IP_TYPE}): bool`]: contains,
    [`${CIDR_TYPE}.containsCIDR(string): bool`]: (cidr: Cidr, text: string) => containsAll(cidr, cidrOf(text)),
    [`${CIDR_TYPE}.containsCIDR(${CIDR_TYPE}): bool`]: containsAll,
    [`${CIDR_TYPE}.ip(): ${IP_TYPE}`]: (cidr: Cidr) => cidr.address,
    [`${CIDR_TYPE}.masked(): ${CIDR_TYPE}`]: masked,
    [`${CIDR_TYPE}.prefixLength(): int`]: (cidr: Cidr) => BigInt(cidr.bits),
    [`string(${CIDR_TYPE}): string`]: (cidr: Cidr) => cidr.text,
  });
}

function succeeds(attempt: () => unknown): boolean {
  try {
    attempt();
    return true;
  } catch {
    return false;
  }
}

/** @throws Error in the library's words */
function parseIp(text: string): IpAddress {
  const zone = text.indexOf("%");
  const address = zone < 0 ? text : text.slice(0, zone);
  if (isIP(address) === 0)
    throw new Error(
      `IP Address ${JSON.stringify(text)} parse error during conversion from string: ParseAddr(${JSON.stringify(text)}): unable to parse IP`,
    );
  if (zone >= 0) throw new Error(`IP address ${JSON.stringify(text)} with zone value is not allowed`);
  const canonical = isIPv6(address) ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;
  if (/^::ffff:/.test(canonical)) throw new Error(`IPv4-mapped IPv6 address ${JSON.stringify(text)} is not allowed`);
  return new IpAddress(canonical);
}

function parseCidr(text: string): Cidr {
  const [address = "", bits = "", ...rest] = text.split("/");
  if (rest.length > 0 || !/^(0|[1-9]\d{0,2})$/.test(bits) || isIP(address) === 0)
    throw new Error(
      `network address parse error during conversion from string: netip.ParsePrefix(${JSON.stringify(text)}): ${bits ? "unable to parse IP" : "no '/'"}`,
    );
  const ip = parseIp(address);
  if (Number(bits) > (ip.family === "ipv4" ? 32 : 128))
    throw new Error(
      `network address parse error during conversion from string: netip.ParsePrefix(${JSON.stringify(text)}): prefix length out of range`,
    );
  return new Cidr(ip, Number(bits));
}

function cidrOf(text: string): Cidr {
  try {
    return parseCidr(text);
  } catch (error) {
    throw new Error(`network address parse error during conversion from string: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function contains(cidr: Cidr, ip: IpAddress): boolean {
  if (cidr.address.family !== ip.family) return false;
  const list = new BlockList();
  list.addSubnet(cidr.address.text, cidr.bits, cidr.address.family);
  return list.check(ip.text, ip.family);
}

function containsAll(cidr: Cidr, other: Cidr): boolean {
  return cidr.bits <= other.bits && contains(cidr, other.address);
}

function masked({ address, bits }: Cidr): Cidr {
  const size = address.family === "ipv4" ? 32 : 128;
  const value = (numberOf(address) >> BigInt(size - bits)) << BigInt(size - bits);
  return new Cidr(parseIp(textOf(value, address.family)), bits);
}

function numberOf({ text, family }: IpAddress): bigint {
  if (family === "ipv4") return text.split(".").reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);
  const [head = "", tail] = text.split("::");
  const left = head ? head.split(":") : [];
  const right = tail ? tail.split(":") : [];
  const parts = tail === undefined ? left : [...left, ...Array(8 - left.length - right.length).fill("0"), ...right];
  return parts.reduce((sum: bigint, part: string) => (sum << 16n) | BigInt(`0x${part}`), 0n);
}

function textOf(value: bigint, family: "ipv4" | "ipv6"): string {
  const [count, width, radix, glue] = family === "ipv4" ? [4, 8n, 10, "."] : [8, 16n, 16, ":"];
  const mask = (1n << (width as bigint)) - 1n;
  return Array.from({ length: count as number }, (_, i) =>
    ((value >> (BigInt((count as number) - 1 - i) * (width as bigint))) & mask).toString(radix as number),
  ).join(glue as string);
}
