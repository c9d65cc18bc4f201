import type { Random } from "#base";
import {
  type ApiObject,
  fieldError,
  invalid,
  resources,
  type Service,
  type ServicePort,
  validateClusterIPs,
} from "#kinds";
import type { Reader, ResourceHooks } from "../ports.ts";
import { ipToNumber, numberToIp, rangeOf } from "./ip-range.ts";

export interface ServiceAllocationOptions {
  /** IPv4 range of cluster addresses: `10.131.0.0/16`. */
  readonly serviceCIDR: string;
  /** Default 30000-32767. */
  readonly nodePorts?: { readonly first: number; readonly last: number };
}

/**
 * Gives Services their cluster address and node ports, each to one Service at a time, and takes them back. What is in use is
 * what stored Services hold, plus what writes under way have reserved.
 * @see https://kubernetes.io/docs/concepts/services-networking/cluster-ip-allocation/
 */
export function createServiceAllocation(
  deps: { reader: Reader; random: Random },
  options: ServiceAllocationOptions,
): ResourceHooks {
  const ips = createPool(deps.random, rangeOf(options.serviceCIDR));
  const ports = createPool(deps.random, options.nodePorts ?? { first: 30000, last: 32767 });
  const holders = new Map<string, Held>();
  const note = (object: ApiObject, deleted: boolean) => {
    const key = `${object.metadata.namespace}/${object.metadata.name}`;
    const before = holders.get(key);
    const now = deleted ? undefined : heldBy(object as unknown as Service);
    // take first: what stays must not be free in between
    for (const ip of now?.ips ?? []) ips.hold(ip, key);
    for (const port of now?.ports ?? []) ports.hold(port, key);
    for (const ip of before?.ips ?? []) if (!now?.ips.includes(ip)) ips.release(ip, key);
    for (const port of before?.ports ?? []) if (!now?.ports.includes(port)) ports.release(port, key);
    if (now) holders.set(key, now);
    else holders.delete(key);
  };
  deps.reader.onChange(resources.services, note);
  for (const service of deps.reader.list(resources.services)) note(service as unknown as ApiObject, false);

  const fill = (service: Service, old: Service | undefined, dryRun: boolean) => {
    const undo: (() => void)[] = [];
    const owner = { key: `${service.metadata.namespace}/${service.metadata.name}`, undo };
    try {
      fillAddress(service, old, ips, owner, options);
      fillPorts(service, old, ports, owner, options);
    } catch (error) {
      for (const release of undo) release();
      throw error;
    }
    if (dryRun) for (const release of undo.splice(0)) release();
    return () => {
      for (const release of undo) release();
    };
  };
  return {
    beforeCreate: (object, { dryRun }) => fill(object as unknown as Service, undefined, dryRun),
    beforeUpdate: (object, old, { dryRun, subresource }) =>
      subresource === "" ? fill(object as unknown as Service, old as unknown as Service, dryRun) : undefined,
  };
}

interface Held {
  readonly ips: readonly number[];
  readonly ports: readonly number[];
}

function heldBy({ spec }: Service): Held {
  const ips = (spec?.clusterIPs ?? []).map(ipToNumber).filter((ip) => ip !== undefined);
  const ports = (spec?.ports ?? []).map((port) => port.nodePort ?? 0).filter((port) => port > 0);
  if (spec?.healthCheckNodePort) ports.push(spec.healthCheckNodePort);
  return { ips, ports };
}

interface Pool {
  /** A free value for `key`; undefined when there is none. */
  take(key: string): number | undefined;
  /** False when another key holds it. */
  claim(value: number, key: string): boolean;
  hold(value: number, key: string): void;
  release(value: number, key: string): void;
  contains(value: number): boolean;
}

function createPool(random: Random, { first, last }: { first: number; last: number }): Pool {
  const holders = new Map<number, string>();
  const size = last - first + 1;
  // the lower part is left to those who choose by hand
  const reserved = Math.min(Math.max(16, Math.floor(size / 16)), 256);
  const scan = (from: number, to: number) => {
    const count = to - from + 1;
    const start = Math.floor(random.next() * count);
    for (let i = 0; i < count; i++) {
      const value = from + ((start + i) % count);
      if (!holders.has(value)) return value;
    }
    return undefined;
  };
  const pool: Pool = {
    take(key) {
      const value =
        (size > reserved ? scan(first + reserved, last) : undefined) ??
        scan(first, Math.min(last, first + reserved - 1));
      if (value !== undefined) holders.set(value, key);
      return value;
    },
    claim(value, key) {
      const holder = holders.get(value);
      if (holder !== undefined && holder !== key) return false;
      holders.set(value, key);
      return true;
    },
    hold: (value, key) => void holders.set(value, key),
    release(value, key) {
      if (holders.get(value) === key) holders.delete(value);
    },
    contains: (value) => value >= first && value <= last,
  };
  return pool;
}

interface Owner {
  readonly key: string;
  readonly undo: (() => void)[];
}

function fillAddress(
  service: Service,
  old: Service | undefined,
  pool: Pool,
  owner: Owner,
  { serviceCIDR }: ServiceAllocationOptions,
): void {
  const spec = service.spec!;
  if (spec.type === "ExternalName") {
    delete spec.internalTrafficPolicy;
    return;
  }
  spec.internalTrafficPolicy ??= "Cluster";
  agree(service, old);
  const errors = validateClusterIPs(service, old);
  if (errors.length > 0) throw invalid({ group: "", kind: "Service" }, service.metadata.name ?? "", errors);
  fillFamilies(service);
  if (spec.clusterIP === "None") return;
  if (!spec.clusterIP) {
    const ip = pool.take(owner.key);
    if (ip === undefined) throw failed(service, "spec.clusterIPs", [], "failed to allocate IP: range is full");
    owner.undo.push(() => pool.release(ip, owner.key));
    spec.clusterIP = numberToIp(ip);
    spec.clusterIPs = [spec.clusterIP];
    return;
  }
  if (old?.spec?.clusterIP === spec.clusterIP) return;
  const asked = ipToNumber(spec.clusterIP);
  // what is no address at all is for validation to tell
  if (asked === undefined) return;
  if (!pool.contains(asked)) {
    throw failed(
      service,
      "spec.clusterIPs",
      spec.clusterIPs!,
      `failed to allocate IP ${spec.clusterIP}: the provided IP (${spec.clusterIP}) is not in the valid range. The range of valid IPs is ${serviceCIDR}`,
    );
  }
  if (!pool.claim(asked, owner.key))
    throw failed(
      service,
      "spec.clusterIPs",
      spec.clusterIPs!,
      `failed to allocate IP ${spec.clusterIP}: provided IP is already allocated`,
    );
  owner.undo.push(() => pool.release(asked, owner.key));
}

/** `clusterIP` and `clusterIPs` say the same, whichever of them the client set; what it left out is as it was. */
function agree({ spec }: Service, old: Service | undefined): void {
  const had = old && old.spec.type !== "ExternalName" ? old.spec : undefined;
  if (had && !spec.clusterIP && (!spec.clusterIPs?.length || spec.clusterIPs.join() === had.clusterIPs?.join())) {
    if (had.clusterIP !== undefined) spec.clusterIP = had.clusterIP;
    if (had.clusterIPs) spec.clusterIPs = [...had.clusterIPs];
  }
  if (!spec.clusterIP) return;
  const left = had && had.clusterIP !== spec.clusterIP && had.clusterIPs?.join() === spec.clusterIPs?.join();
  if (!spec.clusterIPs?.length || left) spec.clusterIPs = [spec.clusterIP];
}

/** This cluster has IPv4 addresses only. @throws StatusError 422 for a Service that needs others */
function fillFamilies(service: Service): void {
  const { spec } = service;
  const anyFamily = spec.clusterIP === "None" && !spec.selector;
  const untold = !spec.ipFamilyPolicy && !spec.ipFamilies;
  // what others answer for a headless Service without a selector may be of any family
  if (anyFamily && untold) spec.ipFamilyPolicy = "RequireDualStack";
  spec.ipFamilyPolicy ??= "SingleStack";
  if (anyFamily) {
    if (untold) spec.ipFamilies = ["IPv4", "IPv6"];
    spec.ipFamilies ??= ["IPv4"];
    return;
  }
  if (spec.ipFamilyPolicy === "RequireDualStack")
    throw failed(
      service,
      "spec.ipFamilyPolicy",
      spec.ipFamilyPolicy,
      "this cluster is not configured for dual-stack services",
    );
  const other = spec.ipFamilies?.findIndex((family) => family !== "IPv4") ?? -1;
  if (other >= 0 && spec.ipFamilyPolicy === "SingleStack")
    throw failed(service, `spec.ipFamilies[${other}]`, spec.ipFamilies![other], "not configured on this cluster");
  spec.ipFamilies ??= ["IPv4"];
}

function fillPorts(
  service: Service,
  old: Service | undefined,
  pool: Pool,
  owner: Owner,
  { nodePorts }: ServiceAllocationOptions,
): void {
  const spec = service.spec!;
  const wanted =
    spec.type === "NodePort" || (spec.type === "LoadBalancer" && spec.allocateLoadBalancerNodePorts !== false);
  const before = old?.spec?.ports ?? [];
  if (!wanted) {
    // a change to another type gives the ports back, unless they were asked for anew
    for (const [i, port] of (spec.ports ?? []).entries())
      if (
        port.nodePort &&
        (spec.type !== "LoadBalancer" || port.nodePort === before[i]?.nodePort) &&
        old &&
        old.spec?.type !== spec.type
      )
        delete port.nodePort;
    return;
  }
  const range = nodePorts ?? { first: 30000, last: 32767 };
  // one number may serve TCP and UDP of the same Service
  const given = new Map<number, string>();
  for (const [i, port] of (spec.ports ?? []).entries()) {
    if (!port.nodePort) port.nodePort = keptPort(port, before) ?? 0;
    if (port.nodePort) claimPort(service, i, port, { pool, owner, range, given, old });
    else takePort(service, i, port, pool, owner);
    given.set(port.nodePort!, port.protocol ?? "TCP");
  }
  if (spec.type === "LoadBalancer" && spec.externalTrafficPolicy === "Local" && !spec.healthCheckNodePort) {
    const value = pool.take(owner.key);
    if (value !== undefined) {
      owner.undo.push(() => pool.release(value, owner.key));
      spec.healthCheckNodePort = value;
    }
  }
}

/** An update that leaves the node port out keeps the one that the port had. */
function keptPort(port: ServicePort, before: readonly ServicePort[]): number | undefined {
  return before.find((one) => one.port === port.port && (one.protocol ?? "TCP") === (port.protocol ?? "TCP"))?.nodePort;
}

function takePort(service: Service, i: number, port: ServicePort, pool: Pool, owner: Owner): void {
  const value = pool.take(owner.key);
  if (value === undefined)
    throw failed(service, `spec.ports[${i}].nodePort`, 0, "failed to allocate a nodePort: range is full");
  owner.undo.push(() => pool.release(value, owner.key));
  port.nodePort = value;
}

function claimPort(
  service: Service,
  i: number,
  port: ServicePort,
  {
    pool,
    owner,
    range,
    given,
    old,
  }: {
    pool: Pool;
    owner: Owner;
    range: { first: number; last: number };
    given: Map<number, string>;
    old: Service | undefined;
  },
): void {
  const value = port.nodePort!;
  const field = `spec.ports[${i}].nodePort`;
  const own = old?.spec?.ports?.some((one) => one.nodePort === value) ?? false;
  if (own || (given.has(value) && given.get(value) !== (port.protocol ?? "TCP"))) return;
  if (!pool.contains(value))
    throw failed(
      service,
      field,
      value,
      `provided port is not in the valid range. The range of valid ports is ${range.first}-${range.last}`,
    );
  if (!pool.claim(value, owner.key) || given.has(value))
    throw failed(service, field, value, "provided port is already allocated");
  owner.undo.push(() => pool.release(value, owner.key));
}

function failed(service: Service, field: string, value: unknown, why: string): Error {
  return invalid({ group: "", kind: "Service" }, service.metadata.name ?? "", [fieldError.invalid(field, value, why)]);
}
