import type { Frontend, Plan, Protocol } from "./plan.ts";

/** Everything that the table holds beside its fixed parts: by element, so that two states can be compared. */
export interface TableState {
  /** Maps and chains that exist because something refers to them; made once, kept. In the order in which they can be made. */
  readonly parts: ReadonlyMap<string, string>;
  /** `map key` → value; the value is empty for the elements of a set. */
  readonly elements: ReadonlyMap<string, Element>;
}

export interface Element {
  readonly map: string;
  readonly key: string;
  readonly value: string;
}

const ADDRESS_KEY = "ip daddr . meta l4proto . th dport";
const PORT_KEY = "meta l4proto . th dport";

/** The fixed parts of a table. Addresses of the service range that nothing routes come to `refuse`, since they are local. */
export function skeleton(
  table: string,
  { serviceCIDR, hostAddress, clusterCIDR }: { serviceCIDR: string; hostAddress: string; clusterCIDR: string },
): string {
  return `
table ip ${table} {
  map addresses { type ipv4_addr . inet_proto . inet_service : verdict; }
  map ports { type inet_proto . inet_service : verdict; }
  set hairpin { type ipv4_addr . ipv4_addr; }
  chain route {
    ${ADDRESS_KEY} vmap @addresses
    fib daddr type local ${PORT_KEY} vmap @ports
  }
  chain arriving { type nat hook prerouting priority dstnat; policy accept; jump route; }
  chain leaving { type nat hook output priority -100; policy accept; jump route; }
  chain sources {
    type nat hook postrouting priority srcnat; policy accept;
    ct status dnat ip saddr . ip daddr @hairpin masquerade
    ct status dnat ip saddr ${hostAddress} ip daddr != ${clusterCIDR} masquerade
    ct status dnat ip saddr 127.0.0.0/8 masquerade
  }
  chain refuse {
    type filter hook input priority filter; policy accept;
    ip daddr ${serviceCIDR} meta l4proto tcp reject with tcp reset
    ip daddr ${serviceCIDR} reject
  }
}
`;
}

/**
 * The elements for a plan: per frontend one in a verdict map, which leads to the chain for its number of targets, and one per
 * target in that chain's flat map, from which a random index chooses. Pure.
 */
export function elementsOf(plan: Plan): TableState {
  const parts = new Map<string, string>();
  const elements = new Map<string, Element>();
  const put = (map: string, key: string, value: string) => elements.set(`${map} ${key}`, { map, key, value });
  for (const frontend of plan.values()) {
    const { protocol, port, address, targets } = frontend;
    const key = address === undefined ? `${protocol} . ${port}` : `${address} . ${protocol} . ${port}`;
    const verdicts = address === undefined ? "ports" : "addresses";
    for (const { ip } of targets) put("hairpin", `${ip} . ${ip}`, "");
    if (frontend.affinitySeconds !== undefined) {
      put(verdicts, key, `goto ${addAffinity(parts, frontend, frontend.affinitySeconds)}`);
      continue;
    }
    const names = addSpread(parts, protocol, targets.length, address === undefined);
    put(verdicts, key, `goto ${names.chain}`);
    for (const [i, target] of targets.entries()) put(names.map, `${key} . ${i}`, `${target.ip} . ${target.port}`);
  }
  return { parts, elements };
}

/** The flat map for so many targets, and the chain that chooses from it. */
function addSpread(
  parts: Map<string, string>,
  protocol: Protocol,
  count: number,
  anyAddress: boolean,
): { map: string; chain: string } {
  const side = anyAddress ? "port" : "address";
  const map = `${side}_${count}`;
  const chain = `${side}_${protocol}_${count}`;
  const expression = `${anyAddress ? PORT_KEY : ADDRESS_KEY} . numgen random mod ${count}`;
  if (!parts.has(map)) parts.set(map, `map ${map} { typeof ${expression} : ip daddr . tcp dport; }`);
  if (!parts.has(chain))
    parts.set(chain, `chain ${chain} { meta l4proto ${protocol} dnat ip to ${expression} map @${map}; }`);
  return { map, chain };
}

/** A chain of its own for a frontend with affinity: a set per target remembers its clients. */
function addAffinity(parts: Map<string, string>, frontend: Frontend, seconds: number): string {
  const { protocol, targets } = frontend;
  const id = `${(frontend.address ?? "any").replaceAll(".", "_")}_${protocol}_${frontend.port}_${seconds}_${targets.map(({ ip, port }) => `${ip.replaceAll(".", "_")}_${port}`).join("_")}`;
  // nftables names have at most 128 characters
  const name = `stay_${shortHash(id)}`;
  const rules: string[] = [];
  const chosen: string[] = [];
  for (const [i, { ip, port }] of targets.entries()) {
    parts.set(`${name}_s${i}`, `set ${name}_s${i} { type ipv4_addr; flags dynamic, timeout; timeout ${seconds}s; }`);
    parts.set(
      `${name}_t${i}`,
      `chain ${name}_t${i} { update @${name}_s${i} { ip saddr }; meta l4proto ${protocol} dnat ip to ${ip}:${port}; }`,
    );
    rules.push(`ip saddr @${name}_s${i} goto ${name}_t${i};`);
    chosen.push(`${i} : goto ${name}_t${i}`);
  }
  parts.set(
    name,
    `chain ${name} { ${rules.join(" ")} numgen random mod ${targets.length} vmap { ${chosen.join(", ")} }; }`,
  );
  return name;
}

/** FNV-1a, 64 bits, in hexadecimal. */
function shortHash(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return hash.toString(16).padStart(16, "0");
}

/** Commands that turn one state into another, in one transaction; empty when nothing differs. Pure. */
export function changeScript(table: string, from: TableState, to: TableState): string {
  const lines: string[] = [];
  const made = [...to.parts].filter(([name]) => !from.parts.has(name)).map(([, text]) => `  ${text}`);
  if (made.length > 0) lines.push(`table ip ${table} {`, ...made, "}");
  const gone: Element[] = [];
  const added: Element[] = [];
  for (const [id, element] of from.elements) if (to.elements.get(id)?.value !== element.value) gone.push(element);
  for (const [id, element] of to.elements) if (from.elements.get(id)?.value !== element.value) added.push(element);
  for (const [map, list] of grouped(gone))
    lines.push(`delete element ip ${table} ${map} { ${list.map(({ key }) => key).join(", ")} }`);
  for (const [map, list] of grouped(added))
    lines.push(
      `add element ip ${table} ${map} { ${list.map(({ key, value }) => (value ? `${key} : ${value}` : key)).join(", ")} }`,
    );
  // chains and sets of affinity belong to one set of targets: they go when nothing leads to them any more
  const stale = [...from.parts].filter(([name]) => name.startsWith("stay_") && !to.parts.has(name)).reverse();
  for (const [name, text] of stale)
    lines.push(`delete ${text.startsWith("set") ? "set" : "chain"} ip ${table} ${name}`);
  return lines.length > 0 ? `${lines.join("\n")}\n` : "";
}

function grouped(elements: readonly Element[]): Map<string, Element[]> {
  const map = new Map<string, Element[]>();
  for (const element of elements) map.set(element.map, [...(map.get(element.map) ?? []), element]);
  return map;
}
