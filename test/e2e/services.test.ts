import assert from "node:assert/strict";
import test from "node:test";
import { startInstance, until } from "../support/instance.ts";

const SERVE = "echo $HOSTNAME > /tmp/index.html; exec busybox httpd -f -p 8080 -h /tmp";
const pod = (name: string, command: string, more: object = {}, container: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels: { app: name } },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: "c", image: "slim/busybox:latest", command: ["sh", "-c", command], ...container }],
    ...more,
  },
});
const service = (name: string, spec: object) => ({ apiVersion: "v1", kind: "Service", metadata: { name }, spec });

test("Services are reached; claims keep what pods write", { timeout: 180_000 }, async (t) => {
  await using slim = await startInstance();
  const apply = async (...items: object[]) => {
    const stdin = items.map((item) => JSON.stringify(item)).join("\n---\n");
    const outcome = await slim.tryKubectl(["apply", "-f", "-"], { stdin });
    assert.equal(outcome.code, 0, outcome.stderr);
  };
  const sh = async (name: string, command: string) =>
    (await slim.tryKubectl(["exec", name, "--", "sh", "-c", command])).stdout.trim();
  const get = (...args: string[]) => slim.kubectl("get", ...args);
  const becomes = (what: string, wanted: string, ask: () => Promise<string>) =>
    until(async () => (await ask()) === wanted, what);

  await apply(
    pod("web", SERVE, { hostname: "one" }),
    service("web", { selector: { app: "web" }, ports: [{ name: "http", port: 80, targetPort: 8080 }] }),
  );
  await slim.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s");
  const podIP = await get("pod", "web", "-o", "jsonpath={.status.podIP}");
  const clusterIP = await get("service", "web", "-o", "jsonpath={.spec.clusterIP}");

  await t.test("a Service is reached from the host, by its own address and by its pod's", async () => {
    const ask = async (at: string) => (await (await fetch(`http://${at}/`)).text()).trim();
    assert.equal(await ask(`${podIP}:8080`), "one");
    await until(
      () =>
        ask(clusterIP).then(
          (text) => text === "one",
          () => false,
        ),
      "an answer of the Service",
    );
  });

  await t.test("a claim is bound when its pod comes, keeps what it wrote, and goes when no pod uses it", async () => {
    const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "data" } }];
    const mounted = { volumeMounts: [{ name: "v", mountPath: "/v" }] };
    const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
    await apply({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "data" }, spec });
    await apply(pod("writer", "echo kept > /v/file; sleep 1000", { volumes }, mounted));
    await slim.kubectl("wait", "--for=condition=Ready", "pod/writer", "--timeout=60s");
    assert.equal(
      await get("pvc", "data", "-o", "jsonpath={.status.phase} {.spec.storageClassName}"),
      "Bound local-path",
    );
    await slim.kubectl("delete", "pod", "writer");
    await apply(pod("reader", "sleep 1000", { volumes }, mounted));
    await slim.kubectl("wait", "--for=condition=Ready", "pod/reader", "--timeout=60s");
    assert.equal(await sh("reader", "cat /v/file"), "kept");
    await slim.kubectl("delete", "pvc", "data", "--wait=false");
    assert.notEqual(await get("pvc", "data", "-o", "jsonpath={.metadata.deletionTimestamp}"), "");
    await slim.kubectl("delete", "pod", "reader");
    await becomes("no claim and no volume", "", () => get("pvc,pv", "-o", "name"));
  });

  await t.test("a scratch volume over its limit ends the pod", async () => {
    const volumes = [{ name: "e", emptyDir: { sizeLimit: "1Mi" } }];
    const command = "dd if=/dev/zero of=/e/file bs=1024 count=3000; sleep 1000";
    await apply(pod("full", command, { volumes }, { volumeMounts: [{ name: "e", mountPath: "/e" }] }));
    const why = () => get("pod", "full", "-o", "jsonpath={.status.phase} {.status.reason}: {.status.message}");
    await becomes("the eviction", 'Failed Evicted: Usage of EmptyDir volume "e" exceeds the limit "1Mi". ', why);
  });
});
