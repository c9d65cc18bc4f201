import type { DeepReadonly } from "#base";
import type { EndpointSlice, Pod, Service } from "#kinds";

export type Protocol = "tcp" | "udp" | "sctp";

/** Where connections arrive: at an address, or (without one) at any address of the host. */
export interface Frontend {
  readonly address: string | undefined;
  readonly protocol: Protocol;
  readonly port: number;
  /** Where they go to, each as likely as another; sorted. */
  readonly targets: readonly Target[];
  /** A client stays with its target this long, seconds; undefined: each connection anew. */
  readonly affinitySeconds: number | undefined;
}

export interface Target {
  readonly ip: string;
  readonly port: number;
}

export interface ProxyFacts {
  readonly services: readonly DeepReadonly<Service>[];
  readonly slices: readonly DeepReadonly<EndpointSlice>[];
  /** Pods of this proxy's nodes; those with host ports count. */
  readonly pods: readonly DeepReadonly<Pod>[];
  /** Names of the nodes whose traffic this proxy routes: what the `Local` policies mean. */
  readonly nodes: ReadonlySet<string>;
}

/** By `address protocol port`; a frontend without targets is left out, and its connections are refused. */
export type Plan = ReadonlyMap<string, Frontend>;

/**
 * What is to be routed where. Pure.
 * @see https://kubernetes.io/docs/reference/networking/virtual-ips/
 */
export function planFrontends(facts: ProxyFacts): Plan {
  const plan = new Map<string, Frontend>();
  const put = (frontend: Frontend) => {
    if (frontend.targets.length === 0) return;
    const key = `${frontend.address ?? "*"} ${frontend.protocol} ${frontend.port}`;
    // the first one keeps a port that two claim
    if (!plan.has(key)) plan.set(key, frontend);
  };
  const slices = byService(facts.slices);
  for (const service of facts.services) {
    const own = slices.get(`${service.metadata.namespace}/${service.metadata.name}`) ?? [];
    for (const frontend of serviceFrontends(service, own, facts.nodes)) put(frontend);
  }
  for (const pod of facts.pods) for (const frontend of hostPorts(pod)) put(frontend);
  return plan;
}

function byService(slices: readonly DeepReadonly<EndpointSlice>[]): Map<string, DeepReadonly<EndpointSlice>[]> {
  const map = new Map<string, DeepReadonly<EndpointSlice>[]>();
  for (const slice of slices) {
    const name = slice.metadata.labels?.["kubernetes.io/service-name"];
    if (!name || slice.addressType !== "IPv4") continue;
    const key = `${slice.metadata.namespace}/${name}`;
    map.set(key, [...(map.get(key) ?? []), slice]);
  }
  return map;
}

function* serviceFrontends(
  service: DeepReadonly<Service>,
  slices: readonly DeepReadonly<EndpointSlice>[],
  nodes: ReadonlySet<string>,
): Generator<Frontend> {
  const { spec } = service;
  if (!spec?.clusterIP || spec.clusterIP === "None" || spec.type === "ExternalName") return;
  const affinitySeconds =
    spec.sessionAffinity === "ClientIP" ? (spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? 10_800) : undefined;
  for (const port of spec.ports ?? []) {
    const protocol = (port.protocol ?? "TCP").toLowerCase() as Protocol;
    const all = targetsOf(slices, port.name ?? "", protocol, undefined);
    const local = () => targetsOf(slices, port.name ?? "", protocol, nodes);
    const internal = spec.internalTrafficPolicy === "Local" ? local() : all;
    const external = spec.externalTrafficPolicy === "Local" ? local() : all;
    const common = { protocol, affinitySeconds };
    yield { ...common, address: spec.clusterIP, port: port.port, targets: internal };
    const outer = [
      ...(spec.externalIPs ?? []),
      ...(service.status?.loadBalancer?.ingress ?? []).flatMap(({ ip, ipMode }) =>
        ip && ipMode !== "Proxy" ? [ip] : [],
      ),
    ];
    for (const address of outer) if (isIPv4(address)) yield { ...common, address, port: port.port, targets: external };
    if (port.nodePort) yield { ...common, address: undefined, port: port.nodePort, targets: external };
  }
}

const isIPv4 = (address: string) => /^\d+\.\d+\.\d+\.\d+$/.test(address);

/** Ready endpoints; when there are none, those that still serve while they terminate. */
function targetsOf(
  slices: readonly DeepReadonly<EndpointSlice>[],
  portName: string,
  protocol: Protocol,
  nodes: ReadonlySet<string> | undefined,
): Target[] {
  const ready = new Map<string, Target>();
  const leaving = new Map<string, Target>();
  for (const slice of slices) {
    const port = slice.ports?.find(
      (one) => (one.name ?? "") === portName && (one.protocol ?? "TCP").toLowerCase() === protocol,
    )?.port;
    if (!port) continue;
    for (const endpoint of slice.endpoints ?? []) {
      if (nodes && !nodes.has(endpoint.nodeName ?? "")) continue;
      const ip = endpoint.addresses[0];
      if (!ip) continue;
      const { ready: isReady = true, serving = isReady, terminating = false } = endpoint.conditions ?? {};
      if (isReady) ready.set(`${ip}:${port}`, { ip, port });
      else if (serving && terminating) leaving.set(`${ip}:${port}`, { ip, port });
    }
  }
  const chosen = ready.size > 0 ? ready : leaving;
  return [...chosen.values()].sort((a, b) => (a.ip === b.ip ? a.port - b.port : a.ip < b.ip ? -1 : 1));
}

function* hostPorts(pod: DeepReadonly<Pod>): Generator<Frontend> {
  const ip = pod.status?.podIP;
  const phase = pod.status?.phase;
  if (!ip || pod.spec?.hostNetwork || phase === "Succeeded" || phase === "Failed") return;
  const containers = [
    ...(pod.spec?.containers ?? []),
    ...(pod.spec?.initContainers ?? []).filter((one) => one.restartPolicy === "Always"),
  ];
  for (const { hostPort, containerPort, hostIP, protocol } of containers.flatMap(
    (container) => container.ports ?? [],
  )) {
    if (!hostPort) continue;
    const address = hostIP && hostIP !== "0.0.0.0" ? hostIP : undefined;
    if (address !== undefined && !isIPv4(address)) continue;
    yield {
      address,
      protocol: (protocol ?? "TCP").toLowerCase() as Protocol,
      port: hostPort,
      targets: [{ ip, port: containerPort }],
      affinitySeconds: undefined,
    };
  }
}
