import { execFile } from "node:child_process";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { CodedError, hasCode } from "#base";
import { type InstanceConfig, instanceIdOf } from "./config.ts";

const run = promisify(execFile);

/** The address ranges of an instance: chosen free at its first start, then kept in `<data>/network.json`. */
export interface InstanceNetwork {
  /** `10.<x>.0.0/16`: pods of all nodes; a node has a /24 of it. */
  readonly clusterCIDR: string;
  /** `10.<x+1>.0.0/16` */
  readonly serviceCIDR: string;
  /** Address of the host inside the pod network, held by `lo`: the API server and DNS answer pods there. */
  readonly hostAddress: string;
  /** First address of the service range: the `kubernetes` Service. */
  readonly kubernetesServiceIP: string;
  /** Tenth address of the service range: cluster DNS. */
  readonly dnsServiceIP: string;
}

/** Addresses that stand in objects only: nothing listens there, and no packet is ever sent there. */
export const FAKE_NETWORK: InstanceNetwork = {
  clusterCIDR: "10.244.0.0/16",
  serviceCIDR: "10.96.0.0/16",
  // loopback addresses are no endpoints
  hostAddress: "10.244.255.1",
  kubernetesServiceIP: "10.96.0.1",
  dnsServiceIP: "10.96.0.10",
};

/** Second bytes of 10.0.0.0/8 that are tried, in pairs; the usual kubeadm values (10.244, 10.96) belong to others. */
const FIRST = 130;
const LAST = 250;

/** The ranges of this data directory, its host address being up. @throws CodedError `no-free-network` */
export async function chooseNetwork(dataDir: string): Promise<InstanceNetwork> {
  const kept = await keptNetwork(dataDir);
  if (kept) {
    await addHostAddress(kept.hostAddress);
    return kept;
  }
  const path = join(dataDir, "network.json");
  const used = await usedSecondBytes();
  for (let base = FIRST; base <= LAST; base += 2) {
    if (used.has(base) || used.has(base + 1)) continue;
    const network = networkOf(base);
    // adding the address is what reserves the range: of two instances that start at once, one is told that it exists
    if (!(await addHostAddress(network.hostAddress))) continue;
    await writeFile(`${path}.tmp`, JSON.stringify({ base }));
    await rename(`${path}.tmp`, path);
    return network;
  }
  throw new CodedError(
    "no-free-network",
    `every range from 10.${FIRST}.0.0/16 to 10.${LAST}.0.0/16 is in use on this host`,
    {
      hint: "Stop an instance with `slim down --purge`, or look at `ip route`.",
    },
  );
}

/** The ranges that were chosen before; undefined when there are none. */
export async function keptNetwork(dataDir: string): Promise<InstanceNetwork | undefined> {
  const text = await readFile(join(dataDir, "network.json"), "utf8").catch((error) => {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  });
  const base = /^\{"base":(\d+)\}$/.exec(text ?? "")?.[1];
  return base === undefined ? undefined : networkOf(Number(base));
}

function networkOf(base: number): InstanceNetwork {
  return {
    clusterCIDR: `10.${base}.0.0/16`,
    serviceCIDR: `10.${base + 1}.0.0/16`,
    hostAddress: `10.${base}.255.1`,
    kubernetesServiceIP: `10.${base + 1}.0.1`,
    dnsServiceIP: `10.${base + 1}.0.10`,
  };
}

/** Where the proxy of an instance keeps its rules, and the ranges that they are about. */
export function proxyPlace(
  config: Pick<InstanceConfig, "dataDir">,
  { serviceCIDR, clusterCIDR, hostAddress }: InstanceNetwork,
): { table: string; serviceCIDR: string; clusterCIDR: string; hostAddress: string } {
  return { table: `slim_${instanceIdOf(config.dataDir)}`, serviceCIDR, clusterCIDR, hostAddress };
}

/** Pod range of the n-th node, from 0. */
export function nodeCIDR(network: InstanceNetwork, node: number): string {
  return network.clusterCIDR.replace(/\.0\.0\/16$/, `.${node}.0/24`);
}

async function usedSecondBytes(): Promise<Set<number>> {
  const [routes, addresses] = await Promise.all([
    run("ip", ["-4", "route", "show", "table", "all"]),
    run("ip", ["-4", "-o", "address", "show"]),
  ]);
  const used = new Set<number>();
  for (const match of `${routes.stdout}\n${addresses.stdout}`.matchAll(/\b10\.(\d+)\.\d+\.\d+/g))
    used.add(Number(match[1]));
  return used;
}

/** Puts the host address on `lo`; false when it was there. */
async function addHostAddress(address: string): Promise<boolean> {
  return run("ip", ["address", "add", `${address}/32`, "dev", "lo"]).then(
    () => true,
    (error: { stderr?: string }) => {
      if (/File exists|already assigned/.test(error.stderr ?? "")) return false;
      throw error;
    },
  );
}

/** Takes it away; succeeds when it is not there. */
export async function removeHostAddress(address: string): Promise<void> {
  await run("ip", ["address", "delete", `${address}/32`, "dev", "lo"]).catch((error: { stderr?: string }) => {
    if (!/Cannot assign requested address/.test(error.stderr ?? "")) throw error;
  });
}

/** The address by which this host reaches others, and its interface: the node's InternalIP. Undefined without a network. */
export async function uplinkAddress(): Promise<string | undefined> {
  const { stdout } = await run("ip", ["-4", "-j", "route", "get", "192.0.2.1"]).catch(() => ({ stdout: "[]" }));
  const [route] = JSON.parse(stdout) as { prefsrc?: string }[];
  return route?.prefsrc;
}

/** The host's DNS servers, but for the cluster's own. */
export async function hostResolvers(own: string): Promise<string[]> {
  const text = await readFile("/etc/resolv.conf", "utf8").catch((error) => {
    if (hasCode(error, "ENOENT")) return "";
    throw error;
  });
  return [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map((match) => match[1]!).filter((server) => server !== own);
}
