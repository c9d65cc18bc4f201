import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { sha256Hex } from "../sys/digest.ts";
import type { Libc } from "../sys/libc.ts";
import type { Namespaces } from "../sys/namespaces.ts";
import { mustRun, type Run } from "../sys/run.ts";
import type { HostRules, PortHolder } from "./host-rules.ts";
import type { AddressPool } from "./ipam.ts";
import * as netlink from "./netlink.ts";
import type { PodNetwork } from "./pod-network.ts";

/** The gateway that every pod sees; it is nobody's address, only a neighbour entry for the host's end of the veth. */
const GATEWAY = "169.254.1.1";
const HOST_MAC = "ee:ee:ee:ee:ee:ee";

interface Wire {
  readonly link: string;
  readonly address: string;
  readonly mac: string;
}

/**
 * Routed veths: each pod has a /32 address and a default route through its veth; the host has a /32 route to each pod. No
 * bridge, so bridge netfilter settings do not matter and a pod can reach itself through a Service.
 */
export function createRoutedNetwork(
  deps: { run: Run; ip: string; libc: Libc | undefined; namespaces: Namespaces; pool: AddressPool; rules: HostRules },
  options: { interfacePrefix: string; mtu: number; hostAddress?: string | undefined },
): PodNetwork {
  const { libc, namespaces, pool, rules } = deps;
  const holders = new Map<string, PortHolder>();
  const wire = (netns: string, end: Wire) =>
    libc ? wireByNetlink(libc, namespaces, netns, end, options) : wireByProgram(deps.run, deps.ip, netns, end, options);
  return {
    needsRecord: false,
    async start() {
      writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
      await rules.install([...holders.values()]);
    },
    async attach(sandboxId, netns, config) {
      const address = pool.take();
      const link = linkName(options.interfacePrefix, sandboxId);
      const holder = { address, mappings: config.portMappings };
      try {
        await wire(netns, { link, address, mac: macFor(sandboxId) });
        if (config.portMappings.length > 0) {
          await rules.addPorts(holder);
          writeFileSync(`/proc/sys/net/ipv4/conf/${link}/route_localnet`, "1"); // 127.0.0.1:hostPort, from the host
        }
      } catch (error) {
        pool.giveBack(address);
        await removeLink(deps.run, deps.ip, link);
        throw error;
      }
      holders.set(sandboxId, holder);
      return { ips: [address], attachment: { kind: "routed", link } };
    },
    adopt({ id, ips, config }) {
      const address = ips[0];
      if (address === undefined) return;
      pool.mark(address);
      holders.set(id, { address, mappings: config.portMappings });
    },
    async detach({ id }) {
      // The veth goes with its namespace, which the caller releases; deleting it here would block for 30 ms.
      const holder = holders.get(id);
      if (!holder) return;
      if (holder.mappings.length > 0) await rules.removePorts(holder);
      holders.delete(id);
      pool.giveBack(holder.address);
    },
    async purge() {
      await rules.purge();
      const listed = JSON.parse((await mustRun(deps.run, deps.ip, ["-j", "link", "show", "type", "veth"])) || "[]") as {
        ifname?: string;
      }[];
      for (const { ifname } of listed)
        if (ifname?.startsWith(options.interfacePrefix)) await removeLink(deps.run, deps.ip, ifname);
    },
  };
}

/** At most 15 characters, the kernel's limit. */
function linkName(prefix: string, sandboxId: string): string {
  return `${prefix}${sha256Hex(sandboxId)}`.slice(0, 15);
}

/** A stable, locally administered address. */
function macFor(sandboxId: string): string {
  return `02${sha256Hex(sandboxId).slice(0, 10)}`.match(/../g)!.join(":");
}

async function wireByNetlink(
  libc: Libc,
  namespaces: Namespaces,
  netns: string,
  { link, address, mac }: Wire,
  { mtu, hostAddress }: { mtu: number; hostAddress?: string | undefined },
): Promise<void> {
  const peerNamespace = openSync(netns, "r");
  const here = netlink.openNetlink(libc);
  const there = namespaces.visitNetwork(netns, () => netlink.openNetlink(libc));
  try {
    here.request(netlink.createVeth({ name: link, mac: HOST_MAC, mtu, peer: "eth0", peerMac: mac, peerNamespace }));
    there.request(netlink.linkUp(1));
    there.request(netlink.linkUp(netlink.PEER_INDEX));
    there.request(netlink.addAddress(netlink.PEER_INDEX, address));
    there.request(netlink.addRoute({ index: netlink.PEER_INDEX, destination: GATEWAY }));
    there.request(netlink.addRoute({ index: netlink.PEER_INDEX, gateway: GATEWAY }));
    there.request(netlink.addNeighbour(netlink.PEER_INDEX, GATEWAY, HOST_MAC));
    const index = Number(readFileSync(`/sys/class/net/${link}/ifindex`, "utf8"));
    here.request(netlink.addRoute({ index, destination: address, source: hostAddress }));
    here.request(netlink.addNeighbour(index, address, mac));
  } finally {
    there.close();
    here.close();
    closeSync(peerNamespace);
  }
}

async function wireByProgram(
  run: Run,
  ip: string,
  netns: string,
  { link, address, mac }: Wire,
  { mtu, hostAddress }: { mtu: number; hostAddress?: string | undefined },
): Promise<void> {
  await mustRun(run, ip, ["-batch", "-"], {
    input: `link add ${link} address ${HOST_MAC} mtu ${mtu} type veth peer name eth0 address ${mac} mtu ${mtu} netns ${netns}
link set ${link} up
route replace ${address}/32 dev ${link} scope link${hostAddress === undefined ? "" : ` src ${hostAddress}`}
neigh replace ${address} lladdr ${mac} dev ${link} nud permanent
`,
  });
  await mustRun(run, "nsenter", [`--net=${netns}`, ip, "-batch", "-"], {
    input: `link set lo up
addr add ${address}/32 dev eth0
link set eth0 up
route add ${GATEWAY} dev eth0 scope link
route add default via ${GATEWAY} dev eth0
neigh replace ${GATEWAY} lladdr ${HOST_MAC} dev eth0 nud permanent
`,
  });
}

async function removeLink(run: Run, ip: string, link: string): Promise<void> {
  const result = await run(ip, ["link", "del", link]);
  if (result.code !== 0 && !/Cannot find device/.test(result.stderr))
    throw new Error(`ip link del ${link}: ${result.stderr.trim()}`);
}
