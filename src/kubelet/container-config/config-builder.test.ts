import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { createSeededRandom, silentLogger, systemClock } from "#base";
import type { Informer } from "#client";
import { createFakeEngine } from "#engine/fake";
import type { ImageStatus, SandboxStatus } from "#engine";
import { type Container, type Pod, resources, type Service } from "#kinds";
import type { ContainerConfigRequest, NodeServices } from "../ports.ts";
import { createObjectCache } from "../volumes/object-cache.ts";
import { createTestClient } from "../volumes/test-client.ts";
import { createVolumeManager } from "../volumes/volume-manager.ts";
import { createConfigBuilder } from "./config-builder.ts";

async function bench(t: TestContext) {
  const top = await mkdtemp(join(tmpdir(), "slim-config-"));
  const test = createTestClient(() => systemClock.now());
  const deps = { clock: systemClock, random: createSeededRandom(1), logger: silentLogger, client: test.client };
  const services: NodeServices = {
    ...deps,
    engine: createFakeEngine(deps),
    services: { synced: async () => {}, list: () => [] as readonly Service[] } as unknown as Informer<Service>,
    node: () => undefined,
  };
  const objects = createObjectCache(deps);
  const volumes = createVolumeManager(services, { root: join(top, "pods"), objects });
  await writeFile(join(top, "resolv.conf"), "nameserver 9.9.9.9\n");
  const builder = createConfigBuilder(
    { ...services, objects, volumes },
    {
      podsRoot: join(top, "pods"),
      logsRoot: join(top, "logs"),
      clusterDomain: "cluster.local",
      clusterDNS: ["10.96.0.10"],
      resolvConf: join(top, "resolv.conf"),
      seccompRoot: join(top, "seccomp"),
      machine: { memoryBytes: 2 ** 33 },
      apparmor: false,
    },
  );
  t.after(async () => {
    await volumes[Symbol.asyncDispose]();
    await objects[Symbol.asyncDispose]();
    await rm(top, { recursive: true });
  });
  return { ...test, top, volumes, builder };
}

const podOf = (container: Partial<Container>, spec: Partial<Pod["spec"]> = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", namespace: "ns", uid: "u1", labels: { app: "x" }, annotations: { note: "n" } },
  spec: { containers: [{ name: "c", image: "img:1", ...container }], ...spec },
});
const request: ContainerConfigRequest = {
  attempt: 2,
  restartCount: 3,
  image: { id: "sha256:abc", uid: 0 } as ImageStatus,
  sandbox: {} as SandboxStatus,
  podIPs: ["10.1.0.5"],
  hostIPs: ["192.168.0.1"],
};

describe("createConfigBuilder() container", () => {
  it("makes the whole configuration", async (t) => {
    const { builder, volumes, top } = await bench(t);
    const pod = podOf(
      {
        command: ["sh", "-c", "echo $(WHO) $$(WHO) $(NOPE)"],
        args: ["$(WHO)"],
        workingDir: "/w",
        env: [{ name: "WHO", value: "me" }],
        volumeMounts: [{ name: "e", mountPath: "/data", subPathExpr: "$(WHO)" }],
        tty: true,
        stdin: true,
        lifecycle: { stopSignal: "SIGUSR1", preStop: { sleep: { seconds: 1 } } },
        ports: [{ containerPort: 80 }],
        terminationMessagePath: "/dev/termination-log",
        terminationMessagePolicy: "File",
      },
      {
        volumes: [{ name: "e", emptyDir: {} }],
        hostAliases: [{ ip: "1.2.3.4", hostnames: ["foo"] }],
        terminationGracePeriodSeconds: 7,
      },
    );
    assert.equal((await volumes.prepare(pod)).state, "ready");
    const config = await builder.container(pod, pod.spec.containers[0]!, request);
    const { mounts, annotations, labels, env, security, resources: _resources, ...rest } = config;
    assert.deepEqual(rest, {
      name: "c",
      attempt: 2,
      image: "sha256:abc",
      imageRef: "img:1",
      command: ["sh", "-c", "echo me $(WHO) $(NOPE)"],
      args: ["me"],
      workingDir: "/w",
      devices: [],
      logPath: join(top, "logs/ns_p_u1/c/2.log"),
      stdin: true,
      stdinOnce: false,
      tty: true,
      stopSignal: "SIGUSR1",
    });
    assert.equal(security.seccomp, "unconfined");
    assert.deepEqual(env, [{ name: "WHO", value: "me" }]);
    assert.deepEqual(
      mounts.map(({ hostPath, containerPath, subPath }) => [hostPath.slice(top.length), containerPath, subPath]),
      [
        ["/pods/u1/volumes/kubernetes.io~empty-dir/e", "/data", "me"],
        ["/pods/u1/etc-hosts", "/etc/hosts", undefined],
        ["/pods/u1/containers/c/2", "/dev/termination-log", undefined],
      ],
    );
    assert.deepEqual(labels, {
      "io.kubernetes.pod.name": "p",
      "io.kubernetes.pod.namespace": "ns",
      "io.kubernetes.pod.uid": "u1",
      "io.kubernetes.container.name": "c",
    });
    assert.equal(annotations["io.kubernetes.container.restartCount"], "3");
    assert.equal(annotations["io.kubernetes.pod.terminationGracePeriod"], "7");
    assert.equal(annotations["io.kubernetes.container.preStopHandler"], '{"sleep":{"seconds":1}}');
    assert.match(
      await readFile(join(top, "pods/u1/etc-hosts"), "utf8"),
      /10\.1\.0\.5\tp\n\n# Entries added by HostAliases/,
    );
    const log = await stat(builder.terminationLogPath({ namespace: "ns", name: "p", uid: "u1" }, "c", 2));
    assert.deepEqual([log.size, log.mode & 0o777], [0, 0o666]);
    assert.ok((await stat(join(top, "logs/ns_p_u1/c"))).isDirectory());
  });

  it("leaves a hosts file to the volume that is mounted there", async (t) => {
    const { builder, volumes } = await bench(t);
    const pod = podOf(
      { volumeMounts: [{ name: "e", mountPath: "/etc/hosts" }] },
      { volumes: [{ name: "e", emptyDir: {} }] },
    );
    await volumes.prepare(pod);
    const { mounts } = await builder.container(pod, pod.spec.containers[0]!, request);
    assert.equal(mounts.filter(({ containerPath }) => containerPath === "/etc/hosts").length, 1);
  });

  it("reads files of volumes for the environment, and makes missing host paths", async (t) => {
    const { builder, volumes, top, put } = await bench(t);
    put(resources.configMaps, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "cm", namespace: "ns" },
      data: { env: "KEY='from file'" },
    });
    const pod = podOf(
      {
        env: [{ name: "A", valueFrom: { fileKeyRef: { volumeName: "v", path: "env", key: "KEY" } } }],
        volumeMounts: [
          { name: "h", mountPath: "/h" },
          { name: "v", mountPath: "/v" },
        ],
      },
      {
        volumes: [
          { name: "v", configMap: { name: "cm" } },
          { name: "h", hostPath: { path: join(top, "new/dir"), type: "" } },
        ],
      },
    );
    await volumes.prepare(pod);
    const { env } = await builder.container(pod, pod.spec.containers[0]!, request);
    assert.deepEqual(env, [{ name: "A", value: "from file" }]);
    assert.ok((await stat(join(top, "new/dir"))).isDirectory());
  });

  it("tells why it cannot be made", async (t) => {
    const { builder } = await bench(t);
    const faults: [Partial<Container>, string][] = [
      [{ env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "no", key: "k" } } }] }, 'configmap "no" not found'],
      [{ envFrom: [{ secretRef: { name: "no" } }] }, 'secret "no" not found'],
      [
        { securityContext: { runAsNonRoot: true } },
        'container has runAsNonRoot and image will run as root (pod: "p_ns(u1)", container: c)',
      ],
      [{ volumeMounts: [{ name: "v", mountPath: "/v" }] }, 'cannot find volume "v" to mount into container "c"'],
      [{ volumeDevices: [{ name: "v", devicePath: "/v" }] }, 'cannot find volume "v" to pass into container "c"'],
    ];
    for (const [container, message] of faults) {
      const pod = podOf(container);
      await assert.rejects(builder.container(pod, pod.spec.containers[0]!, request), {
        name: "ContainerConfigError",
        reason: "CreateContainerConfigError",
        message,
      });
    }
  });
});

describe("createConfigBuilder() sandbox", () => {
  it("makes the whole configuration", async (t) => {
    const { builder, top } = await bench(t);
    const pod = podOf(
      {
        ports: [
          { containerPort: 80, hostPort: 8080, hostIP: "127.0.0.1" },
          { containerPort: 53, hostPort: 53, protocol: "UDP" },
          { containerPort: 1 },
        ],
      },
      {
        subdomain: "s",
        setHostnameAsFQDN: true,
        shareProcessNamespace: true,
        securityContext: { sysctls: [{ name: "net/ipv4/tcp_syncookies", value: "1" }] },
      },
    );
    assert.deepEqual(await builder.sandbox(pod, { attempt: 1, runtimeHandler: "runc" }), {
      name: "p",
      namespace: "ns",
      uid: "u1",
      attempt: 1,
      hostname: "p.s.ns.svc.cluster.local",
      labels: {
        app: "x",
        "io.kubernetes.pod.name": "p",
        "io.kubernetes.pod.namespace": "ns",
        "io.kubernetes.pod.uid": "u1",
      },
      annotations: { note: "n" },
      logDirectory: join(top, "logs/ns_p_u1"),
      dns: {
        servers: ["10.96.0.10"],
        searches: ["ns.svc.cluster.local", "svc.cluster.local", "cluster.local"],
        options: ["ndots:5"],
      },
      namespaces: { network: "pod", pid: "pod", ipc: "pod" },
      sysctls: { "net.ipv4.tcp_syncookies": "1" },
      portMappings: [
        { hostPort: 8080, containerPort: 80, protocol: "TCP", hostIP: "127.0.0.1" },
        { hostPort: 53, containerPort: 53, protocol: "UDP" },
      ],
      qosClass: "BestEffort",
      resources: { cpuShares: 2 },
      runtimeHandler: "runc",
    });
  });

  it("in the host's network has the host's names and no port mappings", async (t) => {
    const { builder } = await bench(t);
    const pod = podOf(
      { ports: [{ containerPort: 80, hostPort: 80 }] },
      { hostNetwork: true, hostPID: true, hostIPC: true },
    );
    const { namespaces, portMappings, dns, hostname } = await builder.sandbox(pod, { attempt: 0 });
    assert.deepEqual(namespaces, { network: "node", pid: "node", ipc: "node" });
    assert.deepEqual(portMappings, []);
    assert.deepEqual(dns?.servers, ["9.9.9.9"]);
    assert.equal(hostname, "");
  });

  it("refuses a user namespace", async (t) => {
    const { builder } = await bench(t);
    await assert.rejects(builder.sandbox(podOf({}, { hostUsers: false }), { attempt: 0 }), {
      message: "can't set `spec.hostUsers: false`, runtime does not support user namespaces",
    });
  });

  it("tells of limits that were exceeded", async (t) => {
    const { builder } = await bench(t);
    const pod = podOf({}, { dnsPolicy: "None", dnsConfig: { nameservers: ["1", "2", "3", "4"] } });
    assert.deepEqual(
      (await builder.warnings?.(pod))?.map(({ type, reason }) => [type, reason]),
      [["Warning", "DNSConfigForming"]],
    );
  });
});
