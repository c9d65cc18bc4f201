import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ConfigMap, type Container, notFound, type Pod, type Secret, type Service } from "#kinds";
import { readEnvFile } from "./env-file.ts";
import { containerEnvironment, type EnvironmentSources } from "./environment.ts";
import { expand, expandStrict } from "./expand.ts";
import { formatMap } from "./field-path.ts";
import { serviceEnvironment } from "./service-env.ts";

describe("expand()", () => {
  const values = new Map([
    ["A", "1"],
    ["EMPTY", ""],
  ]);
  const table: [string, string][] = [
    ["$(A)", "1"],
    ["x$(A)y$(A)", "x1y1"],
    ["$$(A)", "$(A)"],
    ["$$$(A)", "$1"],
    ["$(NOPE)", "$(NOPE)"],
    ["$(EMPTY)", ""],
    ["$(A", "$(A"],
    ["$A $", "$A $"],
    ["$(A$(A))", "$(A$(A))"],
    ["$", "$"],
  ];
  for (const [input, expected] of table) {
    it(`${input} is ${expected}`, () =>
      assert.equal(
        expand(input, (name) => values.get(name)),
        expected,
      ));
  }
  it("of a subPathExpr wants every variable", () => {
    assert.equal(expandStrict("a/$(A)", values), "a/1");
    assert.throws(() => expandStrict("$(Z)/$(B)/$(EMPTY)", values), /^Error: missing value for B, EMPTY, Z$/);
  });
});

const service = (namespace: string, name: string, spec: Partial<NonNullable<Service["spec"]>>): Service => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, namespace },
  spec: spec as NonNullable<Service["spec"]>,
});
const SERVICES = [
  service("default", "kubernetes", { clusterIP: "10.0.0.1", ports: [{ name: "https", port: 443, protocol: "TCP" }] }),
  service("ns", "my-db", { clusterIP: "fd00::1", ports: [{ port: 5, protocol: "UDP" }] }),
  service("ns", "headless", { clusterIP: "None", ports: [{ port: 1 }] }),
  service("other", "web", { clusterIP: "10.0.0.2", ports: [{ port: 80 }] }),
];

describe("serviceEnvironment()", () => {
  const kubernetes = {
    KUBERNETES_SERVICE_HOST: "10.0.0.1",
    KUBERNETES_SERVICE_PORT: "443",
    KUBERNETES_SERVICE_PORT_HTTPS: "443",
    KUBERNETES_PORT: "tcp://10.0.0.1:443",
    KUBERNETES_PORT_443_TCP: "tcp://10.0.0.1:443",
    KUBERNETES_PORT_443_TCP_PROTO: "tcp",
    KUBERNETES_PORT_443_TCP_PORT: "443",
    KUBERNETES_PORT_443_TCP_ADDR: "10.0.0.1",
  };
  it("has the services of the namespace and kubernetes", () => {
    assert.deepEqual(Object.fromEntries(serviceEnvironment(SERVICES, "ns", true)), {
      ...kubernetes,
      MY_DB_SERVICE_HOST: "fd00::1",
      MY_DB_SERVICE_PORT: "5",
      MY_DB_PORT: "udp://[fd00::1]:5",
      MY_DB_PORT_5_UDP: "udp://[fd00::1]:5",
      MY_DB_PORT_5_UDP_PROTO: "udp",
      MY_DB_PORT_5_UDP_PORT: "5",
      MY_DB_PORT_5_UDP_ADDR: "fd00::1",
    });
  });
  it("without links has kubernetes alone", () =>
    assert.deepEqual(Object.fromEntries(serviceEnvironment(SERVICES, "ns", false)), kubernetes));
});

describe("readEnvFile()", () => {
  const file = ["# comment", "", "  A='1'", "B='two", "lines' # why", "C='$(A) \\n'", "D= 'x'", "A='again'"].join("\n");
  const table: [string, string | undefined][] = [
    ["A", "1"],
    ["B", "two\nlines"],
    ["C", "$(A) \\n"],
    ["D", ""],
    ["E", undefined],
  ];
  for (const [key, expected] of table) it(`finds ${key}`, () => assert.equal(readEnvFile(file, key), expected));
  const faults: [string, RegExp][] = [
    ["A=1", /line 1: value must be enclosed in single quotes/],
    ["A", /line 1: missing '='/],
    ["\nA ='1'", /line 2: whitespace before '=' is not allowed/],
    ["='1'", /line 1: empty variable name/],
    ["A='1", /line 1: unclosed single quote/],
    ["A='1'x", /line 1: unexpected content after closing quote/],
  ];
  for (const [text, error] of faults)
    it(`refuses ${JSON.stringify(text)}`, () => assert.throws(() => readEnvFile(text, "Z"), error));
});

describe("formatMap()", () => {
  it("sorts and quotes as Go does", () => {
    assert.equal(
      formatMap({ b: 'q"\\', a: "é\n\t\u0001\u200b\u{1f600}", c: "\u00a0" }),
      'a="é\\n\\t\\x01\\u200b😀"\nb="q\\"\\\\"\nc="\\u00a0"',
    );
  });
});

describe("containerEnvironment()", () => {
  const configMaps: Record<string, ConfigMap["data"]> = { cm: { a: "A", "b.c": "B" } };
  const secrets: Record<string, Secret["data"]> = { s: { user: Buffer.from("bob").toString("base64") } };
  const sources: EnvironmentSources = {
    podIPs: ["10.1.0.5", "fd00::5"],
    hostIPs: ["192.168.0.1"],
    services: SERVICES,
    allocatable: { cpu: "2", memory: "1000000Ki", "ephemeral-storage": "100" },
    async configMap(_namespace, name) {
      const data = configMaps[name];
      if (!data) throw notFound({ group: "", resource: "configmap" }, name);
      return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
    },
    async secret(_namespace, name) {
      const data = secrets[name];
      if (!data) throw notFound({ group: "", resource: "secret" }, name);
      return { apiVersion: "v1", kind: "Secret", metadata: { name }, data };
    },
    volumeFile: async (volume, path) => ({ path: `/v/${volume}/${path}`, text: "K='from file'" }),
  };
  const run = async (container: Partial<Container>, spec: Partial<Pod["spec"]> = {}) => {
    const full: Container = { name: "c", ...container };
    const pod: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "p", namespace: "ns", uid: "u", labels: { app: "x" }, annotations: { "k/y": "v" } },
      spec: { containers: [full], nodeName: "node", serviceAccountName: "sa", enableServiceLinks: false, ...spec },
    };
    const list = await containerEnvironment(pod, full, sources);
    return Object.fromEntries(
      list.filter(({ name }) => !name.startsWith("KUBERNETES_")).map(({ name, value }) => [name, value]),
    );
  };
  const field = (fieldPath: string) => ({ name: "F", valueFrom: { fieldRef: { fieldPath } } });
  const resource = (name: string, divisor?: string) => ({
    name: "F",
    valueFrom: { resourceFieldRef: { resource: name, ...(divisor ? { divisor } : {}) } },
  });

  const good: [string, Partial<Container>, Record<string, string>, Partial<Pod["spec"]>?][] = [
    [
      "expands earlier variables and services, not later ones",
      {
        env: [
          { name: "A", value: "1" },
          { name: "B", value: "$(A)$(C) $(MY_DB_SERVICE_PORT)" },
          { name: "C", value: "$$(A)" },
        ],
      },
      { A: "1", B: "1$(C) 5", C: "$(A)" },
      {},
    ],
    [
      "takes the last of a name",
      {
        env: [
          { name: "A", value: "1" },
          { name: "A", value: "$(A)2" },
        ],
      },
      { A: "12" },
    ],
    [
      "takes all of a source with its prefix; env wins",
      {
        envFrom: [{ prefix: "P_", configMapRef: { name: "cm" } }, { secretRef: { name: "s" } }],
        env: [{ name: "user", value: "x" }],
      },
      { P_a: "A", "P_b.c": "B", user: "x" },
    ],
    [
      "passes over optional sources",
      { envFrom: [{ configMapRef: { name: "no", optional: true } }, { secretRef: { name: "no", optional: true } }] },
      {},
    ],
    [
      "passes over optional keys",
      {
        env: [
          { name: "A", valueFrom: { configMapKeyRef: { name: "cm", key: "no", optional: true } } },
          { name: "B", valueFrom: { secretKeyRef: { name: "no", key: "no", optional: true } } },
          { name: "C", valueFrom: { secretKeyRef: { name: "s", key: "user" } } },
        ],
      },
      { C: "bob" },
    ],
    [
      "reads a file",
      { env: [{ name: "A", valueFrom: { fileKeyRef: { volumeName: "v", path: "e", key: "K" } } }] },
      { A: "from file" },
    ],
    ["fieldRef podIPs", { env: [field("status.podIPs")] }, { F: "10.1.0.5,fd00::5" }],
    ["fieldRef hostIP", { env: [field("status.hostIP")] }, { F: "192.168.0.1" }],
    ["fieldRef nodeName", { env: [field("spec.nodeName")] }, { F: "node" }],
    ["fieldRef label", { env: [field("metadata.labels['app']")] }, { F: "x" }],
    ["fieldRef annotation", { env: [field("metadata.annotations['k/y']")] }, { F: "v" }],
    ["fieldRef absent label", { env: [field("metadata.labels['z']")] }, { F: "" }],
    ["limits.cpu of the node", { env: [resource("limits.cpu")] }, { F: "2" }],
    ["limits.memory of the node in Mi", { env: [resource("limits.memory", "1Mi")] }, { F: "977" }],
    ["requests.cpu of nobody", { env: [resource("requests.cpu", "1m")] }, { F: "0" }],
    [
      "limits.cpu in thousandths",
      { env: [resource("limits.cpu", "1m")], resources: { limits: { cpu: "250m" } } },
      { F: "250" },
    ],
    ["limits.cpu rounded up", { env: [resource("limits.cpu")], resources: { limits: { cpu: "250m" } } }, { F: "1" }],
    [
      "limits.memory of the pod",
      { env: [resource("limits.memory")] },
      { F: "1024" },
      { resources: { limits: { memory: "1Ki" } } },
    ],
  ];
  for (const [name, container, expected, spec = {}] of good) {
    it(name, async () => {
      const links = name.includes("services") ? { enableServiceLinks: true } : {};
      const found = await run(container, { ...spec, ...links });
      for (const key of Object.keys(found)) if (key.startsWith("MY_DB_")) delete found[key];
      assert.deepEqual(found, expected);
    });
  }

  const bad: [string, Partial<Container>, string][] = [
    [
      "a missing key",
      { env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "cm", key: "zz" } } }] },
      "couldn't find key zz in ConfigMap ns/cm",
    ],
    [
      "a missing secret key",
      { env: [{ name: "A", valueFrom: { secretKeyRef: { name: "s", key: "zz" } } }] },
      "couldn't find key zz in Secret ns/s",
    ],
    [
      "a missing config map",
      { env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "no", key: "k" } } }] },
      'configmap "no" not found',
    ],
    ["a missing secret", { envFrom: [{ secretRef: { name: "no" } }] }, 'secret "no" not found'],
    [
      "a missing key in a file",
      { env: [{ name: "A", valueFrom: { fileKeyRef: { volumeName: "v", path: "e", key: "Z" } } }] },
      'environment variable key "Z" not found in file "/v/v/e"',
    ],
    ["an unknown field", { env: [field("spec.foo")] }, "unsupported fieldPath: spec.foo"],
    ["an unknown resource", { env: [resource("limits.gpu")] }, "unsupported container resource : limits.gpu"],
  ];
  for (const [name, container, message] of bad) {
    it(`refuses ${name}`, () => assert.rejects(run(container), { message }));
  }
});
