import assert from "node:assert/strict";
import test from "node:test";
import type { EndpointSlice, Service } from "#kinds";
import { type DnsFacts, resolve } from "./records.ts";

const service = (name: string, spec: object) => ({ metadata: { namespace: "n", name }, spec }) as unknown as Service;
const services: Record<string, Service> = {
  web: service("web", {
    clusterIP: "10.1.0.5",
    ports: [
      { name: "http", port: 80 },
      { name: "dns", port: 53, protocol: "UDP" },
    ],
  }),
  db: service("db", { clusterIP: "None" }),
  empty: service("empty", { clusterIP: "None" }),
  out: service("out", { type: "ExternalName", externalName: "example.test" }),
};
const slices: Record<string, EndpointSlice[]> = {
  db: [
    {
      metadata: { namespace: "n", name: "db-1" },
      addressType: "IPv4",
      ports: [{ name: "pg", port: 5432, protocol: "TCP" }],
      endpoints: [
        { addresses: ["10.0.0.1"], hostname: "db-0", conditions: { ready: true } },
        { addresses: ["10.0.0.2"], conditions: { ready: true } },
        { addresses: ["10.0.0.3"], conditions: { ready: false } },
      ],
    } as unknown as EndpointSlice,
  ],
};
const facts: DnsFacts = {
  service: (namespace, name) => (namespace === "n" ? services[name] : undefined),
  slices: (_, name) => slices[name] ?? [],
  hasNamespace: (name) => name === "n",
  serviceByAddress: (ip) => (ip === "10.1.0.5" ? services.web : undefined),
  endpointByAddress: (ip) => (ip === "10.0.0.1" ? "db-0.db.n" : undefined),
};

function ask(name: string, type = "A"): string | undefined {
  const found = resolve({ name, type: type as "A" }, "cluster.local", facts);
  if (!found) return undefined;
  const shown = found.answers.map((one) => {
    const data = (one as { data: unknown }).data as string | { port?: number; target?: string };
    return typeof data === "string" ? `${one.type} ${data}` : `${one.type} ${data.port} ${data.target}`;
  });
  return shown.length > 0 ? shown.join(", ") : found.code;
}

const TABLE: [string, string, string | undefined][] = [
  ["web.n.svc.cluster.local", "A", "A 10.1.0.5"],
  ["WEB.n.svc.Cluster.local", "A", "A 10.1.0.5"],
  ["web.n.svc.cluster.local", "AAAA", "NOERROR"],
  ["_http._tcp.web.n.svc.cluster.local", "SRV", "SRV 80 web.n.svc.cluster.local"],
  ["_dns._udp.web.n.svc.cluster.local", "SRV", "SRV 53 web.n.svc.cluster.local"],
  ["_none._tcp.web.n.svc.cluster.local", "SRV", "NXDOMAIN"],
  ["db.n.svc.cluster.local", "A", "A 10.0.0.1, A 10.0.0.2"],
  ["db-0.db.n.svc.cluster.local", "A", "A 10.0.0.1"],
  ["10-0-0-2.db.n.svc.cluster.local", "A", "A 10.0.0.2"],
  ["db-9.db.n.svc.cluster.local", "A", "NXDOMAIN"],
  [
    "_pg._tcp.db.n.svc.cluster.local",
    "SRV",
    "SRV 5432 db-0.db.n.svc.cluster.local, SRV 5432 10-0-0-2.db.n.svc.cluster.local",
  ],
  ["empty.n.svc.cluster.local", "A", "NXDOMAIN"],
  ["out.n.svc.cluster.local", "A", "CNAME example.test"],
  ["none.n.svc.cluster.local", "A", "NXDOMAIN"],
  ["web.none.svc.cluster.local", "A", "NXDOMAIN"],
  ["n.svc.cluster.local", "A", "NOERROR"],
  ["10-0-0-9.n.pod.cluster.local", "A", "A 10.0.0.9"],
  ["10-0-0-999.n.pod.cluster.local", "A", "NXDOMAIN"],
  ["dns-version.cluster.local", "TXT", "TXT 1.1.0"],
  ["5.0.1.10.in-addr.arpa", "PTR", "PTR web.n.svc.cluster.local"],
  ["1.0.0.10.in-addr.arpa", "PTR", "PTR db-0.db.n.svc.cluster.local"],
  ["9.9.9.9.in-addr.arpa", "PTR", undefined],
  ["example.test", "A", undefined],
  ["notcluster.local", "A", undefined],
];

for (const [name, type, expected] of TABLE)
  test(`${type} ${name} is ${expected ?? "somebody else's"}`, () => assert.equal(ask(name, type), expected));
