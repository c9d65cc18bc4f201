import type { Answer, Question, StringAnswer } from "dns-packet";
import type { DeepReadonly } from "#base";
import type { EndpointSlice, Service } from "#kinds";

/** What names are made from. */
export interface DnsFacts {
  service(namespace: string, name: string): DeepReadonly<Service> | undefined;
  /** IPv4 slices of a Service. */
  slices(namespace: string, name: string): readonly DeepReadonly<EndpointSlice>[];
  hasNamespace(name: string): boolean;
  /** Services by cluster address, for reverse look-ups. */
  serviceByAddress(ip: string): DeepReadonly<Service> | undefined;
  /** Name below its Service of an endpoint with a hostname: `web-0.web.ns`. */
  endpointByAddress(ip: string): string | undefined;
}

export interface Resolution {
  /** `NXDOMAIN`: no such name. `NOERROR` without answers: the name has other records. */
  readonly code: "NOERROR" | "NXDOMAIN";
  readonly answers: readonly Answer[];
  readonly additionals: readonly Answer[];
  /** A CNAME that leads out of the zone: whoever answers looks it up. */
  readonly alias?: string;
}

/** Seconds that clients may keep an answer. */
const TTL = 5;

interface Endpoint {
  readonly ip: string;
  readonly label: string;
}

/**
 * Answers a question about the cluster's zone, or about addresses; undefined: not ours. Pure.
 * @see https://github.com/kubernetes/dns/blob/master/docs/specification.md (schema version 1.1.0)
 */
export function resolve(
  question: Pick<Question, "name" | "type">,
  zone: string,
  facts: DnsFacts,
): Resolution | undefined {
  const name = question.name.toLowerCase().replace(/\.$/, "");
  if (name.endsWith(".in-addr.arpa")) return reverse(name, question.type, zone, facts);
  if (name !== zone && !name.endsWith(`.${zone}`)) return undefined;
  const labels = name === zone ? [] : name.slice(0, -zone.length - 1).split(".");
  const context = { name, type: question.type, zone, facts };
  if (labels.length === 0) return name === zone && question.type === "SOA" ? answered([soa(zone)]) : NODATA;
  if (labels.length === 1 && labels[0] === "dns-version")
    return question.type === "TXT" ? answered([{ name, type: "TXT", ttl: TTL, data: "1.1.0" }]) : NODATA;
  const kind = labels.at(-1);
  if (kind === "pod") return podName(labels, context);
  if (kind === "svc") return serviceName(labels.slice(0, -1), context);
  return NXDOMAIN;
}

const NODATA: Resolution = { code: "NOERROR", answers: [], additionals: [] };
const NXDOMAIN: Resolution = { code: "NXDOMAIN", answers: [], additionals: [] };
const answered = (answers: readonly Answer[], additionals: readonly Answer[] = []): Resolution => ({
  code: "NOERROR",
  answers,
  additionals,
});

interface Context {
  readonly name: string;
  readonly type: string | undefined;
  readonly zone: string;
  readonly facts: DnsFacts;
}

/** The record that goes with an answer that is none: how long its absence may be remembered. */
export function soa(zone: string): Answer {
  return {
    name: zone,
    type: "SOA",
    ttl: TTL,
    data: {
      mname: `ns.dns.${zone}`,
      rname: `hostmaster.${zone}`,
      serial: 1,
      refresh: 7200,
      retry: 1800,
      expire: 86_400,
      minimum: TTL,
    },
  };
}

/** `10-1-2-3.<namespace>.pod` */
function podName(labels: readonly string[], { name, type, facts }: Context): Resolution {
  if (labels.length === 1) return NODATA;
  const [dashed = "", namespace = ""] = labels.length === 3 ? labels : [undefined, labels[0]];
  if (!facts.hasNamespace(namespace)) return NXDOMAIN;
  if (labels.length === 2) return NODATA;
  const ip = ipOf(dashed);
  if (labels.length !== 3 || !ip) return NXDOMAIN;
  return type === "A" ? answered([a(name, ip)]) : NODATA;
}

function ipOf(dashed: string): string | undefined {
  const parts = dashed.split("-");
  return parts.length === 4 && parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256)
    ? parts.join(".")
    : undefined;
}

/** `[…].<service>.<namespace>` */
function serviceName(labels: readonly string[], context: Context): Resolution {
  const { facts } = context;
  const namespace = labels.at(-1);
  if (namespace === undefined) return NODATA;
  if (!facts.hasNamespace(namespace)) return NXDOMAIN;
  const own = labels.at(-2);
  if (own === undefined) return NODATA;
  const service = facts.service(namespace, own);
  if (!service) return NXDOMAIN;
  const rest = labels.slice(0, -2);
  if (service.spec?.type === "ExternalName") return rest.length === 0 ? externalName(service, context) : NXDOMAIN;
  if (rest.length === 0) return addresses(service, context);
  if (rest.length === 2 && rest[0]!.startsWith("_") && rest[1]!.startsWith("_"))
    return ports(service, rest[0]!.slice(1), rest[1]!.slice(1), context);
  if (rest.length === 1 && isHeadless(service)) return endpointName(service, rest[0]!, context);
  return NXDOMAIN;
}

const isHeadless = (service: DeepReadonly<Service>) => service.spec?.clusterIP === "None";
const a = (name: string, ip: string): Answer => ({ name, type: "A", ttl: TTL, data: ip }) as StringAnswer;

function externalName(service: DeepReadonly<Service>, { name, type }: Context): Resolution {
  const alias = service.spec?.externalName?.replace(/\.$/, "");
  if (!alias) return NODATA;
  if (type !== "A" && type !== "AAAA" && type !== "CNAME" && type !== "ANY") return NODATA;
  return { ...answered([{ name, type: "CNAME", ttl: TTL, data: alias }]), alias };
}

function addresses(service: DeepReadonly<Service>, context: Context): Resolution {
  const { name, type, facts } = context;
  if (!isHeadless(service)) {
    const ip = service.spec?.clusterIP;
    if (type === "SRV") return ports(service, "", "", context);
    return type === "A" && ip ? answered([a(name, ip)]) : NODATA;
  }
  const endpoints = endpointsOf(service, facts);
  // a headless Service without endpoints has no name
  if (endpoints.length === 0) return NXDOMAIN;
  if (type === "SRV") return ports(service, "", "", context);
  return type === "A" ? answered([...new Set(endpoints.map(({ ip }) => ip))].map((ip) => a(name, ip))) : NODATA;
}

function endpointsOf(service: DeepReadonly<Service>, facts: DnsFacts): Endpoint[] {
  const { namespace = "", name = "" } = service.metadata;
  return facts
    .slices(namespace, name)
    .flatMap((slice) =>
      (slice.endpoints ?? []).flatMap(({ addresses: [ip], conditions, hostname }) =>
        ip && conditions?.ready !== false ? [{ ip, label: hostname ?? ip.replaceAll(".", "-") }] : [],
      ),
    );
}

function endpointName(service: DeepReadonly<Service>, label: string, { name, type, facts }: Context): Resolution {
  const found = endpointsOf(service, facts).filter((endpoint) => endpoint.label === label);
  if (found.length === 0) return NXDOMAIN;
  return type === "A" ? answered(found.map(({ ip }) => a(name, ip))) : NODATA;
}

/** SRV records: of one named port, or of all with empty names. */
function ports(
  service: DeepReadonly<Service>,
  portName: string,
  protocol: string,
  { name, type, zone, facts }: Context,
): Resolution {
  const { namespace, name: own } = service.metadata;
  const base = `${own}.${namespace}.svc.${zone}`;
  const wanted = (port: { name?: string; protocol?: string }) =>
    portName === "" || (port.name === portName && (port.protocol ?? "TCP").toLowerCase() === protocol);
  const srv = (target: string, port: number): Answer => ({
    name,
    type: "SRV",
    ttl: TTL,
    data: { priority: 0, weight: 100, port, target },
  });
  const answers: Answer[] = [];
  const additionals: Answer[] = [];
  if (isHeadless(service)) {
    for (const slice of facts.slices(namespace ?? "", own ?? "")) {
      for (const port of slice.ports ?? []) {
        if (!wanted(port as { name?: string; protocol?: string }) || !port.port) continue;
        for (const {
          addresses: [ip],
          conditions,
          hostname,
        } of slice.endpoints ?? []) {
          if (!ip || conditions?.ready === false) continue;
          const target = `${hostname ?? ip.replaceAll(".", "-")}.${base}`;
          answers.push(srv(target, port.port));
          additionals.push(a(target, ip));
        }
      }
    }
  } else {
    for (const port of service.spec?.ports ?? [])
      if (wanted(port as { name?: string; protocol?: string })) answers.push(srv(base, port.port));
    if (answers.length > 0 && service.spec?.clusterIP) additionals.push(a(base, service.spec.clusterIP));
  }
  if (answers.length === 0) return NXDOMAIN;
  return type === "SRV" ? answered(answers, additionals) : NODATA;
}

function reverse(name: string, type: string | undefined, zone: string, facts: DnsFacts): Resolution | undefined {
  const ip = name.slice(0, -".in-addr.arpa".length).split(".").reverse().join(".");
  const service = facts.serviceByAddress(ip);
  const own = service ? `${service.metadata.name}.${service.metadata.namespace}` : facts.endpointByAddress(ip);
  if (!own) return undefined;
  return type === "PTR" ? answered([{ name, type: "PTR", ttl: TTL, data: `${own}.svc.${zone}` }]) : NODATA;
}
