import assert from "node:assert/strict";
import { test } from "node:test";
import { type Container, type Pod, type PodSpec, resources } from "#kinds";
import { attributesOf, createFakeReader, run } from "../fixture.ts";
import { createPodSecurity } from "./pod-security.ts";

const LABEL = "pod-security.kubernetes.io/";

function setUp(labels: Record<string, string>) {
  const reader = createFakeReader();
  const prefixed = Object.fromEntries(Object.entries(labels).map(([key, value]) => [LABEL + key, value]));
  reader.put(resources.namespaces, { metadata: { name: "ns", labels: prefixed } });
  return { reader, plugin: createPodSecurity({ reader }), prefixed };
}

const podOf = (name: string, spec: Partial<PodSpec> = {}, first: Partial<Container> = {}, annotations = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "ns", annotations },
  spec: {
    containers: [
      { name: "c", image: "x", ...first },
      { name: "d", image: "x" },
    ],
    ...spec,
  },
});

const GOOD: Partial<PodSpec> = {
  securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } },
  containers: [
    { name: "c", image: "x", securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } } },
  ],
};

const REFUSED: readonly (readonly [labels: Record<string, string>, pod: Pod, why: string])[] = [
  [
    { enforce: "restricted" },
    podOf("a"),
    'restricted:latest": allowPrivilegeEscalation != false (containers "c", "d" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers "c", "d" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or containers "c", "d" must set securityContext.runAsNonRoot=true), seccompProfile (pod or containers "c", "d" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  ],
  [
    { enforce: "restricted", "enforce-version": "v1.18" },
    podOf("a"),
    'restricted:v1.18": allowPrivilegeEscalation != false (containers "c", "d" must set securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true (pod or containers "c", "d" must set securityContext.runAsNonRoot=true)',
  ],
  [
    { enforce: "baseline" },
    podOf(
      "c",
      {},
      {
        securityContext: {
          privileged: true,
          capabilities: { add: ["NET_ADMIN"] },
          seLinuxOptions: { type: "spc_t", role: "u" },
        },
        ports: [
          { containerPort: 80, hostPort: 8080 },
          { containerPort: 81, hostPort: 90 },
        ],
      },
    ),
    'baseline:latest": non-default capabilities (container "c" must not include "NET_ADMIN" in securityContext.capabilities.add), hostPort (container "c" uses hostPorts 8080, 90), privileged (container "c" must not set securityContext.privileged=true), seLinuxOptions (container "c" set forbidden securityContext.seLinuxOptions: type "spc_t"; role may not be set)',
  ],
  [
    { enforce: "restricted" },
    podOf("e", {
      ...GOOD,
      hostPID: true,
      hostIPC: true,
      securityContext: {
        ...GOOD.securityContext,
        sysctls: [
          { name: "kernel.msgmax", value: "1" },
          { name: "net.ipv4.tcp_rmem", value: "1" },
        ],
        runAsUser: 0,
        runAsNonRoot: false,
        windowsOptions: { hostProcess: true },
      },
      volumes: [
        { name: "h", hostPath: { path: "/" } },
        { name: "n", nfs: { server: "a", path: "/b" } },
      ],
    }),
    'restricted:latest": host namespaces (hostPID=true, hostIPC=true), forbidden sysctls (kernel.msgmax), hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true), restricted volume types (volumes "h", "n" use restricted volume types "hostPath", "nfs"), runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false), runAsUser=0 (pod must not set runAsUser=0)',
  ],
  [
    { enforce: "baseline", "enforce-version": "v1.18" },
    podOf("s", {}, {}, { "seccomp.security.alpha.kubernetes.io/pod": "unconfined" }),
    'baseline:v1.18": seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")',
  ],
  [
    { enforce: "baseline" },
    podOf("p", {}, { livenessProbe: { httpGet: { host: "1.2.3.4", port: 80 } } }),
    'baseline:latest": probe or lifecycle host (container "c" uses probe or lifecycle host "1.2.3.4")',
  ],
];

for (const [labels, pod, why] of REFUSED) {
  test(`refused: ${why.slice(0, 60)}`, () =>
    assert.rejects(run(setUp(labels).plugin, attributesOf(resources.pods, { object: pod })), {
      message: `pods "${pod.metadata.name}" is forbidden: violates PodSecurity "${why}`,
    }));
}

test("a pod that keeps to the level comes in; root in an own user namespace counts as not root", async () => {
  const { plugin } = setUp({ enforce: "restricted" });
  await run(plugin, attributesOf(resources.pods, { object: podOf("ok", GOOD) }));
  const { securityContext: _, ...rest } = GOOD;
  const own = podOf("own", { ...rest, hostUsers: false, securityContext: { seccompProfile: { type: "Localhost" } } });
  await run(plugin, attributesOf(resources.pods, { object: own }));
});

test("workloads are warned of, at the level of enforce unless another is asked for", async () => {
  const template = { spec: podOf("x").spec };
  const deployment = { metadata: { name: "web", namespace: "ns" }, spec: { template } };
  const warned = async (labels: Record<string, string>) => {
    const attributes = attributesOf(resources.deployments, { object: deployment });
    await run(setUp(labels).plugin, attributes);
    return attributes.warnings.map((text) => text.slice(0, 40));
  };
  assert.deepEqual(await warned({ enforce: "restricted" }), ['would violate PodSecurity "restricted:la']);
  assert.deepEqual(await warned({ enforce: "restricted", warn: "privileged" }), []);
  assert.deepEqual(await warned({ warn: "restricted", "warn-version": "v1.19" }), [
    'would violate PodSecurity "restricted:v1',
  ]);
});

test("an update that changes no image is not looked at", async () => {
  const { plugin } = setUp({ enforce: "baseline" });
  const old = podOf("a", { hostNetwork: true });
  await run(
    plugin,
    attributesOf(resources.pods, { object: { ...old, metadata: { ...old.metadata, labels: { a: "b" } } }, old }),
  );
  const changed = podOf("a", { hostNetwork: true }, { image: "y" });
  await assert.rejects(
    run(plugin, attributesOf(resources.pods, { object: changed, old })),
    /host namespaces \(hostNetwork=true\)/,
  );
});

test("a stricter namespace tells of the pods that are there", async () => {
  const { plugin, reader, prefixed } = setUp({ enforce: "restricted" });
  for (const name of ["b", "a"]) reader.put(resources.pods, podOf(name, GOOD));
  for (const name of ["z", "y", "x"]) reader.put(resources.pods, podOf(name, { ...GOOD, hostNetwork: true }));
  reader.put(resources.pods, podOf("w", { ...GOOD, hostPID: true, hostUsers: true, securityContext: {} }));
  const attributes = attributesOf(resources.namespaces, {
    object: { metadata: { name: "ns", labels: prefixed } },
    old: { metadata: { name: "ns" } },
  });
  await run(plugin, attributes);
  assert.deepEqual(attributes.warnings, [
    'existing pods in namespace "ns" violate the new PodSecurity enforce level "restricted:latest"',
    "w: host namespaces, runAsNonRoot != true, seccompProfile",
    "x (and 2 other pods): host namespaces",
  ]);
});

test("labels that can't be read are refused", async () => {
  const { plugin, prefixed } = setUp({ enforce: "x", "audit-version": "v2" });
  const object = { metadata: { name: "bad", labels: prefixed } };
  await assert.rejects(run(plugin, attributesOf(resources.namespaces, { object })), {
    message:
      'Namespace "bad" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x": must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: "v2": must be "latest" or "v1.x"]',
  });
});
