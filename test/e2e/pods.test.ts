import assert from "node:assert/strict";
import test from "node:test";
import { startInstance, until } from "../support/instance.ts";

const image = "slim/busybox:latest";
const sh = (name: string, command: string, more: object = {}) => ({
  name,
  image,
  command: ["sh", "-c", command],
  ...more,
});

test("what the kernel decides about a pod", { timeout: 180_000 }, async (t) => {
  const slim = await startInstance();
  try {
    const run = async (name: string, spec: object) => {
      const pod = {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name },
        spec: { terminationGracePeriodSeconds: 1, ...spec },
      };
      const outcome = await slim.tryKubectl(["apply", "-f", "-"], { stdin: JSON.stringify(pod) });
      assert.equal(outcome.code, 0, outcome.stderr);
    };
    const get = (name: string, path: string) => slim.kubectl("get", "pod", name, "-o", `jsonpath=${path}`);
    const ready = (name: string) => slim.kubectl("wait", "--for=condition=Ready", `pod/${name}`, "--timeout=60s");

    await t.test("init containers and a sidecar come before the main one, and share its volume", async () => {
      const volumeMounts = [{ name: "v", mountPath: "/v" }];
      await run("order", {
        restartPolicy: "Never",
        volumes: [{ name: "v", emptyDir: {} }],
        initContainers: [
          sh("first", "echo first >> /v/log", { volumeMounts }),
          sh("side", "echo side >> /v/log; touch /v/up; trap 'exit 3' TERM; while :; do sleep 0.1; done", {
            restartPolicy: "Always",
            startupProbe: { exec: { command: ["test", "-e", "/v/up"] }, periodSeconds: 1 },
            volumeMounts,
          }),
        ],
        containers: [sh("main", "echo main >> /v/log; cat /v/log", { volumeMounts })],
      });
      await until(async () => (await get("order", "{.status.phase}")) === "Succeeded", "order Succeeded");
      assert.equal(await slim.kubectl("logs", "order", "-c", "main"), "first\nside\nmain\n");
      assert.equal(await get("order", "{.status.initContainerStatuses[1].state.terminated.exitCode}"), "3");
    });

    await t.test("probes reach the container: exec, HTTP by port name, TCP", async () => {
      await run("probed", {
        containers: [
          sh("c", "mkdir -p /www; echo fine > /www/ok; exec httpd -f -p 8080 -h /www", {
            ports: [{ name: "web", containerPort: 8080 }],
            startupProbe: { tcpSocket: { port: "web" }, periodSeconds: 1 },
            livenessProbe: { exec: { command: ["test", "-e", "/www/ok"] }, periodSeconds: 1, failureThreshold: 1 },
            readinessProbe: { httpGet: { path: "/ok", port: "web" }, periodSeconds: 1 },
          }),
        ],
      });
      await ready("probed");
      await slim.kubectl("exec", "probed", "--", "rm", "/www/ok");
      await until(
        async () => (await get("probed", "{.status.containerStatuses[0].restartCount}")) === "1",
        "a restart",
      );
      await ready("probed");
    });

    await t.test("a resize changes the control group of the same process", async () => {
      await run("sized", {
        containers: [
          sh("c", "sleep 1000", { resources: { requests: { memory: "32Mi" }, limits: { memory: "64Mi" } } }),
        ],
      });
      await ready("sized");
      const limit = () =>
        slim.kubectl(
          "exec",
          "sized",
          "--",
          "sh",
          "-c",
          "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max",
        );
      assert.equal((await limit()).trim(), String(64 * 1024 ** 2));
      const patch = { spec: { containers: [{ name: "c", resources: { limits: { memory: "96Mi" } } }] } };
      await slim.kubectl("patch", "pod", "sized", "--subresource", "resize", "-p", JSON.stringify(patch));
      const path = "{.status.containerStatuses[0].resources.limits.memory}";
      await until(async () => (await get("sized", path)) === "96Mi", "the new limit");
      assert.equal((await limit()).trim(), String(96 * 1024 ** 2));
      assert.equal(await get("sized", "{.status.containerStatuses[0].restartCount}"), "0");
    });

    await t.test("a command that is not there is told, and nothing else is printed", async () => {
      const { code, stderr } = await slim.tryKubectl(["exec", "sized", "--", "nothing"]);
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^error: Internal error occurred: Internal error occurred: error executing command in container: failed to exec in container: failed to start exec "[0-9a-f]{64}": OCI runtime exec failed: exec failed: unable to start container process: exec: "nothing": executable file not found in \$PATH\n$/,
      );
    });

    await t.test("hooks: preStop ends before the stop signal comes", async () => {
      const volume = { name: "v", hostPath: { path: `${slim.dir}/hooks`, type: "DirectoryOrCreate" } };
      await run("hooked", {
        terminationGracePeriodSeconds: 10,
        volumes: [volume],
        containers: [
          sh("c", "trap 'echo term >> /v/log; exit 0' TERM; while :; do sleep 0.05; done", {
            volumeMounts: [{ name: "v", mountPath: "/v" }],
            lifecycle: { preStop: { exec: { command: ["sh", "-c", "sleep 0.3; echo hook >> /v/log"] } } },
          }),
        ],
      });
      await ready("hooked");
      await slim.kubectl("delete", "pod", "hooked");
      await run("reader", {
        restartPolicy: "Never",
        volumes: [volume],
        containers: [sh("c", "cat /v/log", { volumeMounts: [{ name: "v", mountPath: "/v" }] })],
      });
      await until(async () => (await get("reader", "{.status.phase}")) === "Succeeded", "reader Succeeded");
      assert.equal(await slim.kubectl("logs", "reader"), "hook\nterm\n");
    });
  } finally {
    await slim[Symbol.asyncDispose]();
  }
});
