import assert from "node:assert/strict";
import test from "node:test";
import { errorsOf } from "../support/errors-of.ts";

// Every message here is what kube-apiserver v1.36 answers.

const V1 = "networking.k8s.io/v1";
const backend = { service: { name: "s", port: { number: 80 } } };
const onPath = (path: object) => ({
  rules: [{ host: "a.b", http: { paths: [{ backend, pathType: "Prefix", ...path }] } }],
});
const PATH = "spec.rules[0].http.paths[0]";

const INGRESSES: readonly (readonly [spec: object, ...errors: string[]])[] = [
  [{ defaultBackend: backend }],
  [onPath({ path: "/x" })],
  [{}, "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
  [{ defaultBackend: {} }, 'spec.defaultBackend: Invalid value: "": resource or service backend is required'],
  [
    { defaultBackend: { service: {} } },
    "spec.defaultBackend.service.name: Required value",
    "spec.defaultBackend: Required value: port name or number is required",
  ],
  [
    { defaultBackend: { service: { name: "s", port: { name: "a", number: 80 } } } },
    'spec.defaultBackend: Invalid value: "": cannot set both port name & port number',
  ],
  [
    { defaultBackend: { resource: { kind: "", name: "" } } },
    "spec.defaultBackend.resource.kind: Required value",
    "spec.defaultBackend.resource.name: Required value",
  ],
  [onPath({ path: "x" }), `${PATH}.path: Invalid value: "x": must be an absolute path`],
  [onPath({ path: "/a/../b" }), `${PATH}.path: Invalid value: "/a/../b": must not contain '/../'`],
  [onPath({ path: "/a/.." }), `${PATH}.path: Invalid value: "/a/..": cannot end with '/..'`],
  [onPath({ path: "/x", pathType: undefined }), `${PATH}.pathType: Required value: pathType must be specified`],
  [
    onPath({ path: "/x", pathType: "x" }),
    `${PATH}.pathType: Unsupported value: "x": supported values: "Exact", "ImplementationSpecific", "Prefix"`,
  ],
  [
    { rules: [{ host: "1.2.3.4" }] },
    'spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
  ],
];

for (const [spec, ...errors] of INGRESSES)
  test(`Ingress ${JSON.stringify(spec)}`, () => assert.deepEqual(errorsOf(V1, "Ingress", { spec }), errors));

const CLASSES: readonly (readonly [spec: object, ...errors: string[]])[] = [
  [{ controller: "a.b/c", parameters: { kind: "K", name: "n" } }],
  [{}, "spec.controller: Required value"],
  [{ controller: "a" }, 'spec.controller: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")'],
  [
    { controller: "a.b/c", parameters: { kind: "K", name: "n", scope: "Namespace" } },
    "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
  ],
  [
    { controller: "a.b/c", parameters: { kind: "a/b", name: "", scope: "Cluster", namespace: "x" } },
    "spec.parameters.kind: Invalid value: \"a/b\": may not contain '/'",
    "spec.parameters.name: Required value",
    "spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'",
  ],
];

for (const [spec, ...errors] of CLASSES)
  test(`IngressClass ${JSON.stringify(spec)}`, () => assert.deepEqual(errorsOf(V1, "IngressClass", { spec }), errors));

test("an IngressClass keeps its controller", () =>
  assert.deepEqual(errorsOf(V1, "IngressClass", { spec: { controller: "a.b/d" } }, { spec: { controller: "a.b/c" } }), [
    'spec.controller: Invalid value: "a.b/d": field is immutable',
  ]));

const from = (peer: object) => ({ podSelector: {}, ingress: [{ from: [peer] }] });
const ports = (port: object) => ({ podSelector: {}, ingress: [{ ports: [port] }] });
const BLOCK = "spec.ingress[0].from[0].ipBlock";
const PORT = "spec.ingress[0].ports[0]";

const POLICIES: readonly (readonly [spec: object, ...errors: string[]])[] = [
  [from({ ipBlock: { cidr: "10.0.0.0/8", except: ["10.1.0.0/16"] } })],
  [from({}), "spec.ingress[0].from[0]: Required value: must specify a peer"],
  [
    from({ podSelector: {}, ipBlock: { cidr: "10.0.0.0/8" } }),
    "spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer",
  ],
  [from({ ipBlock: { cidr: "" } }), `${BLOCK}.cidr: Required value`],
  [
    from({ ipBlock: { cidr: "x" } }),
    `${BLOCK}.cidr: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,
  ],
  [
    from({ ipBlock: { cidr: "10.0.0.1/8" } }),
    `${BLOCK}.cidr: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length`,
  ],
  [
    from({ ipBlock: { cidr: "010.0.0.0/8" } }),
    `${BLOCK}.cidr: Invalid value: "010.0.0.0/8": must not have leading 0s in IP or prefix length`,
  ],
  [
    from({ ipBlock: { cidr: "::ffff:1.2.3.0/120" } }),
    `${BLOCK}.cidr: Invalid value: "::ffff:1.2.3.0/120": must not have an IPv4-mapped IPv6 address`,
  ],
  ...["11.0.0.0/16", "10.0.0.0/8", "fd00::/16"].map(
    (range) =>
      [
        from({ ipBlock: { cidr: "10.0.0.0/8", except: [range] } }),
        `${BLOCK}.except[0]: Invalid value: "${range}": must be a strict subset of \`cidr\``,
      ] as const,
  ),
  [ports({ port: 80, endPort: 70 }), `${PORT}.endPort: Invalid value: 80: must be greater than or equal to \`port\``],
  [
    ports({ port: "a", endPort: 80 }),
    `${PORT}.endPort: Invalid value: 80: may not be specified when \`port\` is non-numeric`,
  ],
  [ports({ endPort: 80 }), `${PORT}.endPort: Invalid value: 80: may not be specified when \`port\` is not specified`],
  [
    ports({ port: 80, protocol: "x" }),
    `${PORT}.protocol: Unsupported value: "x": supported values: "TCP", "UDP", "SCTP"`,
  ],
  [
    { podSelector: {}, policyTypes: ["Ingress", "Egress", "Ingress"] },
    'spec.policyTypes: Invalid value: ["Ingress","Egress","Ingress"]: may not specify more than two policyTypes',
  ],
];

for (const [spec, ...errors] of POLICIES)
  test(`NetworkPolicy ${JSON.stringify(spec)}`, () =>
    assert.deepEqual(errorsOf(V1, "NetworkPolicy", { spec }), errors));
