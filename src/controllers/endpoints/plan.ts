import { type DeepReadonly, deepEqual } from "#base";
import type { Endpoint, EndpointPort, EndpointSlice, Service } from "#kinds";
import { isPodReady, isPodTerminal, type Pod, podCondition } from "#kinds";
import { timeOf } from "../runtime/objects.ts";

type P = DeepReadonly<Pod>;
type S = DeepReadonly<Service>;
type Slice = DeepReadonly<EndpointSlice>;

export type AddressType = "IPv4" | "IPv6";
/** Endpoints that a slice holds at most. */
export const SLICE_SIZE = 100;

/** Endpoints that share their ports, and so their slices. */
export interface PortGroup {
  readonly ports: readonly EndpointPort[];
  readonly endpoints: readonly Endpoint[];
}

/** What has to be written so that slices hold the endpoints that they should. */
export interface SlicePlan {
  readonly create: { ports: readonly EndpointPort[]; endpoints: readonly Endpoint[] }[];
  /** `ports`: the slice gets others. */
  readonly update: { slice: Slice; endpoints: readonly Endpoint[]; ports?: readonly EndpointPort[] }[];
  readonly remove: Slice[];
}

/** Whether a pod can be an endpoint at all: it has an address and is not over. */
export const isCandidate = (pod: P): boolean =>
  !isPodTerminal(pod) && Boolean(pod.status?.podIP || pod.status?.podIPs?.length);

const familyOf = (ip: string): AddressType => (ip.includes(":") ? "IPv6" : "IPv4");

export function addressesOf(pod: P, type: AddressType): string[] {
  const all = pod.status?.podIPs?.map(({ ip }) => ip) ?? (pod.status?.podIP ? [pod.status.podIP] : []);
  return all.filter((ip): ip is string => Boolean(ip) && familyOf(ip!) === type);
}

/** The address types of a Service, from its families. */
export function addressTypesOf(service: S): AddressType[] {
  const families = service.spec?.ipFamilies?.length ? service.spec.ipFamilies : undefined;
  if (families) return families as AddressType[];
  const ip = service.spec?.clusterIP;
  return [ip && ip !== "None" ? familyOf(ip) : "IPv4"];
}

/** The number of a service port on a pod: a number, or the containers' port of that name. */
export function targetPortOf(pod: P, port: NonNullable<NonNullable<S["spec"]>["ports"]>[number]): number | undefined {
  const target = port.targetPort ?? port.port;
  if (typeof target === "number") return target || port.port;
  if (/^\d+$/.test(target)) return Number(target);
  const sidecars = (pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  for (const container of [...pod.spec.containers, ...sidecars]) {
    const found = container.ports?.find(
      ({ name, protocol = "TCP" }) => name === target && protocol === (port.protocol ?? "TCP"),
    );
    if (found) return found.containerPort;
  }
  return undefined;
}

export function portsFor(service: S, pod: P): EndpointPort[] {
  return (service.spec?.ports ?? []).flatMap((port) => {
    const number = targetPortOf(pod, port);
    if (number === undefined) return [];
    const { name = "", protocol = "TCP", appProtocol } = port;
    return [{ name, port: number, protocol, ...(appProtocol ? { appProtocol } : {}) }];
  });
}

/** https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/#conditions */
export function endpointOf(service: S, pod: P, type: AddressType, zone: string | undefined): Endpoint {
  const serving = isPodReady(pod);
  const terminating = pod.metadata.deletionTimestamp !== undefined;
  const ready = Boolean(service.spec?.publishNotReadyAddresses) || (serving && !terminating);
  const { namespace = "", name, uid = "" } = pod.metadata;
  const { nodeName, hostname, subdomain } = pod.spec;
  const named = hostname && subdomain === service.metadata.name && service.metadata.namespace === namespace;
  return {
    addresses: addressesOf(pod, type),
    conditions: { ready, serving, terminating },
    ...(named ? { hostname } : {}),
    targetRef: { kind: "Pod", namespace, name, uid },
    ...(nodeName ? { nodeName } : {}),
    ...(zone ? { zone } : {}),
    ...hintsOf(service, nodeName, zone),
  };
}

/** Hints for `trafficDistribution`. https://kubernetes.io/docs/concepts/services-networking/service/#traffic-distribution */
function hintsOf(service: S, nodeName: string | undefined, zone: string | undefined): Pick<Endpoint, "hints"> {
  const wanted = service.spec?.trafficDistribution;
  if (!wanted || !zone) return {};
  const forZones = [{ name: zone }];
  if (wanted === "PreferClose" || wanted === "PreferSameZone") return { hints: { forZones } };
  if (wanted === "PreferSameNode" && nodeName) return { hints: { forZones, forNodes: [{ name: nodeName }] } };
  return {};
}

/** The endpoints of a service for one address type, grouped by their ports. */
export function groupEndpoints(
  service: S,
  pods: readonly P[],
  type: AddressType,
  zoneOf: (node: string) => string | undefined,
): PortGroup[] {
  const groups = new Map<string, { ports: EndpointPort[]; endpoints: Endpoint[] }>();
  for (const pod of pods) {
    if (!isCandidate(pod) || addressesOf(pod, type).length === 0) continue;
    const ports = portsFor(service, pod);
    const key = JSON.stringify(ports);
    const group = groups.get(key) ?? { ports, endpoints: [] };
    group.endpoints.push(endpointOf(service, pod, type, pod.spec.nodeName ? zoneOf(pod.spec.nodeName) : undefined));
    groups.set(key, group);
  }
  return [...groups.values()];
}

const idOf = (endpoint: DeepReadonly<Endpoint>): string => endpoint.targetRef?.uid ?? endpoint.addresses.join();

/**
 * Puts endpoints into slices with few writes: what is in a slice stays there, what is new goes into slices that change
 * anyway or have room, the rest into new ones. Empty slices go; a service without endpoints keeps one placeholder.
 */
export function planSlices(groups: readonly PortGroup[], existing: readonly Slice[]): SlicePlan {
  const plan: SlicePlan = { create: [], update: [], remove: [] };
  const left = new Set(existing);
  for (const group of groups) {
    const slices = existing.filter(
      (slice) => samePorts(slice.ports, group.ports) && (slice.endpoints?.length ?? 0) > 0,
    );
    for (const slice of slices) left.delete(slice);
    planGroup(group, slices, plan);
  }
  if (groups.length === 0 && plan.create.length === 0) {
    const placeholder = existing.find((slice) => !slice.endpoints?.length && !slice.ports?.length);
    if (placeholder) left.delete(placeholder);
    else plan.create.push({ ports: [], endpoints: [] });
  }
  plan.remove.push(...left);
  // a slice that would go becomes one that would come: one write instead of two, and it keeps its name
  while (plan.create.length > 0 && plan.remove.length > 0)
    plan.update.push({ slice: plan.remove.shift()!, ...plan.create.shift()! });
  return plan;
}

function planGroup(group: PortGroup, slices: readonly Slice[], plan: SlicePlan): void {
  const wanted = new Map(group.endpoints.map((endpoint) => [idOf(endpoint), endpoint]));
  const states = slices.map((slice) => {
    const kept: Endpoint[] = [];
    let changed = false;
    for (const before of slice.endpoints ?? []) {
      const endpoint = wanted.get(idOf(before));
      wanted.delete(idOf(before));
      if (!endpoint || !deepEqual(endpoint, before)) changed = true;
      if (endpoint) kept.push(endpoint);
    }
    return { slice, kept, changed };
  });
  const fresh = [...wanted.values()];
  for (const state of states.toSorted((a, b) => Number(b.changed) - Number(a.changed))) {
    const room = SLICE_SIZE - state.kept.length;
    if (fresh.length === 0 || room <= 0 || state.kept.length === 0) continue;
    state.kept.push(...fresh.splice(0, room));
    state.changed = true;
  }
  for (const { slice, kept, changed } of states) {
    if (kept.length === 0 && fresh.length === 0) plan.remove.push(slice);
    else if (kept.length === 0) plan.update.push({ slice, endpoints: fresh.splice(0, SLICE_SIZE) });
    else if (changed) plan.update.push({ slice, endpoints: kept });
  }
  while (fresh.length > 0) plan.create.push({ ports: group.ports, endpoints: fresh.splice(0, SLICE_SIZE) });
}

function samePorts(a: Slice["ports"] | null, b: readonly EndpointPort[]): boolean {
  const text = (list: NonNullable<Slice["ports"]> | readonly EndpointPort[]) =>
    list
      .map(({ name = "", port, protocol = "TCP", appProtocol }) => JSON.stringify([name, port, protocol, appProtocol]))
      .sort()
      .join();
  return text(a ?? []) === text(b);
}

/** `<service>-`, cut where a generated name would be too long. */
export const slicePrefix = (name: string): string => (`${name}-`.length > 58 ? name.slice(0, 57) : `${name}-`);

/**
 * Tells when what is said of each Service last changed, for measuring how long it took to say it: the newest of the Service's
 * creation and its pods' readiness; undefined when that was told before.
 */
export function createTriggerTimes(): {
  of(key: string, service: S, pods: readonly P[]): string | undefined;
  forget(key: string): void;
} {
  const told = new Map<string, number>();
  return {
    of(key, service, pods) {
      const times = pods.map((pod) => timeOf(podCondition(pod, "Ready")?.lastTransitionTime));
      const newest = Math.max(timeOf(service.metadata.creationTimestamp), ...times);
      if (newest <= (told.get(key) ?? 0)) return undefined;
      told.set(key, newest);
      return `${new Date(newest).toISOString().slice(0, 19)}Z`;
    },
    forget: (key) => void told.delete(key),
  };
}
