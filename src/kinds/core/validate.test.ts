import assert from "node:assert/strict";
import test from "node:test";
import { errorsOf } from "../support/errors-of.ts";

// Every message here is what kube-apiserver v1.36 answers.

const service = (spec: object) => ({ spec: { ports: [{ port: 80 }], ...spec } });
const given = { clusterIP: "10.0.0.5", clusterIPs: ["10.0.0.5"] };

const SERVICES: readonly (readonly [spec: object, ...errors: string[]])[] = [
  [{}],
  [{ ports: [] }, "spec.ports: Required value"],
  [{ ports: [{ port: 80 }, { port: 81 }] }, "spec.ports[0].name: Required value", "spec.ports[1].name: Required value"],
  [
    {
      ports: [
        { name: "a", port: 80 },
        { name: "b", port: 80 },
      ],
    },
    'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}',
  ],
  [
    { ports: [{ port: 80, protocol: "X" }] },
    'spec.ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
  ],
  [
    { ports: [{ port: 80, nodePort: 30000 }] },
    "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
  ],
  [
    { ports: [{ port: 80, targetPort: "80" }] },
    'spec.ports[0].targetPort: Invalid value: "80": must contain at least one letter (a-z)',
  ],
  [{ type: "ExternalName" }, "spec.externalName: Required value"],
  [
    { type: "NodePort", clusterIP: "None", clusterIPs: ["None"] },
    "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services",
  ],
  [
    { clusterIPs: ["10.0.0.5"] },
    'spec.clusterIPs: Invalid value: ["10.0.0.5"]: must be empty when `clusterIP` is not specified',
  ],
  [
    { ...given, ipFamilies: ["IPv6"] },
    'spec.clusterIPs[0]: Invalid value: "10.0.0.5": expected an IPv6 value as indicated by `ipFamilies[0]`',
  ],
  [
    { externalIPs: ["127.0.0.1"] },
    'spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
  ],
  [
    { externalTrafficPolicy: "Local" },
    'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services',
  ],
  [
    { loadBalancerSourceRanges: ["10.0.0.0/8"] },
    "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
  ],
  [
    { type: "LoadBalancer", loadBalancerSourceRanges: ["10.0.0.1/8"] },
    'spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length',
  ],
  [
    { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } },
    "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and less than 86400",
  ],
];

for (const [spec, ...errors] of SERVICES)
  test(`Service ${JSON.stringify(spec)}: ${errors.length === 0 ? "valid" : errors[0]}`, () =>
    assert.deepEqual(errorsOf("v1", "Service", service(spec)), errors));

test("a Service keeps its first address", () => {
  const other = { clusterIP: "10.0.0.6", clusterIPs: ["10.0.0.6"] };
  assert.deepEqual(errorsOf("v1", "Service", service(other), service(given)), [
    'spec.clusterIPs[0]: Invalid value: ["10.0.0.6"]: may not change once set',
  ]);
});

const FROZEN = "field is immutable when `immutable` is set";
const CONFIGS: readonly (readonly [kind: string, object: object, old: object | undefined, ...errors: string[]])[] = [
  ["ConfigMap", { data: { "..a": "x" } }, undefined, "data[..a]: Invalid value: \"..a\": must not start with '..'"],
  [
    "ConfigMap",
    { data: { a: "x".repeat(2 ** 20 + 1) } },
    undefined,
    "[]: Too long: may not be more than 1048576 bytes",
  ],
  [
    "ConfigMap",
    { data: { a: "x" }, binaryData: { a: "eA==" } },
    undefined,
    'data[a]: Invalid value: "a": duplicate of key present in binaryData',
  ],
  [
    "ConfigMap",
    { immutable: true, data: { a: "2" } },
    { immutable: true, data: { a: "1" } },
    `data: Forbidden: ${FROZEN}`,
  ],
  ["ConfigMap", { data: { a: "1" } }, { immutable: true, data: { a: "1" } }, `immutable: Forbidden: ${FROZEN}`],
  ["Secret", { type: "kubernetes.io/tls", data: { "tls.crt": "eA==" } }, undefined, "data[tls.key]: Required value"],
  [
    "Secret",
    { type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": "eA==" } },
    undefined,
    "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character 'x' looking for beginning of value",
  ],
  ["Secret", { type: "y" }, { type: "x" }, 'type: Invalid value: "y": field is immutable'],
];

for (const [kind, object, old, ...errors] of CONFIGS)
  test(`${kind}: ${errors[0]}`, () => assert.deepEqual(errorsOf("v1", kind, object, old), errors));
