import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import test from "node:test";
import type { Probe } from "../../src/kinds/mod.ts";
import { condition, containerStatus, createHarness } from "./harness.test-support.ts";

const exec = { exec: { command: ["check"] } };
const every = (more: Partial<Probe> = {}): Probe => ({ ...exec, periodSeconds: 1, ...more });

test("readiness follows the probe by its thresholds", async () => {
  let healthy = false;
  await using node = await createHarness({ script: () => ({ exec: () => ({ exitCode: healthy ? 0 : 1 }) }) });
  await node.run("p", {
    containers: [{ name: "c", readinessProbe: every({ successThreshold: 2, failureThreshold: 3 }) }],
  });
  await node.until("p", (p) => containerStatus(p)?.state?.running);
  await node.pass(5000);
  const unready = (await node.get("p"))!;
  assert.equal(containerStatus(unready)?.ready, false);
  assert.equal(containerStatus(unready)?.started, true);
  assert.equal(condition(unready, "Ready")?.reason, "ContainersNotReady");
  healthy = true;
  const up = await node.advanceUntil("p", (p) => condition(p, "Ready")?.status === "True", { step: 250 });
  assert.ok(up >= 1000 && up <= 2500, `ready after two successes, a second apart: ${up}`);
  healthy = false;
  const down = await node.advanceUntil("p", (p) => condition(p, "Ready")?.status === "False", { step: 250 });
  assert.ok(down >= 2000 && down <= 3500, `unready after three failures: ${down}`);
  assert.equal(containerStatus((await node.get("p"))!)?.restartCount, 0);
});

test("a liveness failure kills with the probe's grace period and restarts; the new run has a fresh count", async () => {
  let runs = 0;
  await using node = await createHarness({
    script() {
      const first = runs++ === 0;
      return { onStop: "ignore", exec: () => ({ exitCode: first ? 1 : 0, stdout: "no" }) };
    },
  });
  await node.run("p", {
    terminationGracePeriodSeconds: 300,
    containers: [{ name: "c", livenessProbe: every({ failureThreshold: 2, terminationGracePeriodSeconds: 5 }) }],
  });
  const took = await node.advanceUntil("p", (p) => containerStatus(p)?.restartCount === 1);
  assert.ok(took >= 6000 && took <= 9000, `two failures and 5 s of grace: ${took}`);
  await node.pass(20_000, 1000);
  const pod = (await node.get("p"))!;
  assert.equal(containerStatus(pod)?.restartCount, 1);
  assert.equal(containerStatus(pod)?.lastState?.terminated?.exitCode, 137);
  const events = await node.events("p");
  assert.ok(
    events.some((event) => event.startsWith("Unhealthy Liveness probe failed: no")),
    events.join("\n"),
  );
  assert.ok(events.includes("Killing Container c failed liveness probe, will be restarted"), events.join("\n"));
});

test("a failed liveness probe under Never ends the pod", async () => {
  await using node = await createHarness({ script: () => ({ exec: () => ({ exitCode: 1 }) }) });
  await node.run("p", {
    restartPolicy: "Never",
    containers: [{ name: "c", livenessProbe: every({ failureThreshold: 1 }) }],
  });
  await node.advanceUntil("p", (p) => p.status?.phase === "Failed");
  assert.equal(containerStatus((await node.get("p"))!)?.state?.terminated?.exitCode, 143);
});

test("a startup probe holds the others back, and its failure restarts", async () => {
  const asked: string[] = [];
  await using node = await createHarness({
    script: () => ({
      exec(command, { runningMs }) {
        asked.push(command[0] ?? "");
        return { exitCode: command[0] === "startup" && runningMs < 3000 ? 1 : 0 };
      },
    }),
  });
  const probe = (name: string): Probe => ({ exec: { command: [name] }, periodSeconds: 1, failureThreshold: 5 });
  await node.run("p", {
    containers: [
      { name: "c", startupProbe: probe("startup"), livenessProbe: probe("live"), readinessProbe: probe("ready") },
    ],
  });
  await node.until("p", (p) => containerStatus(p)?.state?.running);
  await node.pass(2000);
  assert.deepEqual([...new Set(asked)], ["startup"]);
  assert.equal(containerStatus((await node.get("p"))!)?.started, false);
  await node.advanceUntil("p", (p) => containerStatus(p)?.ready);
  const startups = asked.filter((name) => name === "startup").length;
  await node.pass(5000);
  assert.equal(asked.filter((name) => name === "startup").length, startups);
  assert.ok(asked.includes("live"));
});

test("an exec probe past its time fails; others of the node are not delayed by hung ones", async () => {
  await using node = await createHarness({
    script: ({ sandbox }) => ({
      exec: () => (sandbox.name.startsWith("hung") ? { afterMs: Number.POSITIVE_INFINITY } : {}),
    }),
  });
  const hung = Array.from({ length: 100 }, (_, i) => `hung${i}`);
  for (const name of hung) {
    await node.run(name, { containers: [{ name: "c", readinessProbe: every({ timeoutSeconds: 600 }) }] });
  }
  await node.run("hung-timed", { containers: [{ name: "c", readinessProbe: every({ timeoutSeconds: 1 }) }] });
  await node.run("fine", { containers: [{ name: "c", readinessProbe: every() }] });
  const took = await node.advanceUntil("fine", (p) => containerStatus(p)?.ready);
  assert.ok(took <= 1000, `${took}`);
  await node.pass(3000);
  assert.equal(containerStatus((await node.get("hung99"))!)?.ready, false);
  const events = await node.events("hung-timed");
  assert.ok(
    events.some((event) =>
      event.startsWith('Unhealthy Readiness probe failed: command timed out: "check" timed out after 1s'),
    ),
    events.join("\n"),
  );
});

test("HTTP and TCP probes over the pod's address, with ports by name", async (t) => {
  const answers: [string, string, boolean][] = [
    ["200", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", true],
    ["399", "HTTP/1.1 399 Odd\r\ncontent-length: 0\r\n\r\n", true],
    ["404", "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", false],
    ["500", "HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", false],
  ];
  for (const [name, answer, ready] of answers) {
    await t.test(`HTTP ${name}`, async () => {
      let asked = "";
      await using node = await createHarness({
        script: () => ({ connect: (port) => (port === 8080 ? server(answer, (text) => (asked += text)) : undefined) }),
      });
      await node.run("p", {
        containers: [
          {
            name: "c",
            ports: [{ name: "web", containerPort: 8080 }],
            readinessProbe: {
              httpGet: { path: "/healthz?x=1", port: "web", httpHeaders: [{ name: "X-Probe", value: "yes" }] },
              periodSeconds: 1,
            },
          },
        ],
      });
      await node.until("p", (p) => containerStatus(p)?.state?.running);
      await node.pass(2000);
      assert.equal(containerStatus((await node.get("p"))!)?.ready, ready);
      assert.match(asked, /^GET \/healthz\?x=1 HTTP\/1\.1\r\n/);
      assert.match(asked, /\r\nuser-agent: kube-probe\/1\.36\r\n/i);
      assert.match(asked, /\r\nx-probe: yes\r\n/i);
      if (!ready) {
        const code = name;
        assert.ok(
          (await node.events("p")).some((e) =>
            e.includes(`Readiness probe failed: HTTP probe failed with statuscode: ${code}`),
          ),
        );
      }
    });
  }
  await t.test("TCP refused, then accepted", async () => {
    let open = false;
    await using node = await createHarness({ script: () => ({ connect: () => (open ? server("") : undefined) }) });
    await node.run("p", { containers: [{ name: "c", readinessProbe: { tcpSocket: { port: 99 }, periodSeconds: 1 } }] });
    await node.until("p", (p) => containerStatus(p)?.state?.running);
    await node.pass(2000);
    assert.equal(containerStatus((await node.get("p"))!)?.ready, false);
    assert.ok((await node.events("p")).some((e) => e.includes("dial tcp 10.244.0.2:99: connect: connection refused")));
    open = true;
    await node.advanceUntil("p", (p) => containerStatus(p)?.ready, { most: 3000 });
  });
});

test("a port name that no container has is told as an error", async () => {
  await using node = await createHarness();
  await node.run("p", {
    containers: [{ name: "c", readinessProbe: { tcpSocket: { port: "none" }, periodSeconds: 1 } }],
  });
  await node.until("p", (p) => containerStatus(p)?.state?.running);
  await node.pass(2000);
  assert.equal(containerStatus((await node.get("p"))!)?.ready, false);
  assert.ok(
    (await node.events("p")).some((event) => event.includes(`couldn't find port: "none" in pod's container "c"`)),
  );
});

test("while a pod ends readiness goes on, liveness and startup do not", async () => {
  const asked: string[] = [];
  let ready = true;
  await using node = await createHarness({
    script: () => ({
      onStop: { exitCode: 0, afterMs: 10_000 },
      exec(command) {
        asked.push(command[0] ?? "");
        return { exitCode: command[0] === "ready" && !ready ? 1 : 0 };
      },
    }),
  });
  await node.run("p", {
    containers: [
      {
        name: "c",
        livenessProbe: { exec: { command: ["live"] }, periodSeconds: 1 },
        readinessProbe: { exec: { command: ["ready"] }, periodSeconds: 1, failureThreshold: 1 },
      },
    ],
  });
  await node.advanceUntil("p", (p) => containerStatus(p)?.ready);
  await node.delete("p", 30);
  await node.pass(500);
  const before = asked.filter((name) => name === "live").length;
  ready = false;
  await node.advanceUntil("p", (p) => condition(p, "Ready")?.status === "False", { most: 5000 });
  await node.pass(2000);
  assert.equal(asked.filter((name) => name === "live").length, before);
  await node.pass(8000);
  await node.gone("p");
});

test("a restarted kubelet keeps what probes had found, and starts none at once for all", async () => {
  let healthy = true;
  await using node = await createHarness({ script: () => ({ exec: () => ({ exitCode: healthy ? 0 : 1 }) }) });
  await node.run("ready", { containers: [{ name: "c", readinessProbe: every({ failureThreshold: 3 }) }] });
  await node.run("starting", {
    containers: [{ name: "c", startupProbe: every({ failureThreshold: 1000, initialDelaySeconds: 100 }) }],
  });
  await node.advanceUntil("ready", (p) => containerStatus(p)?.ready);
  healthy = false;
  await node.restart();
  await node.pass(500);
  assert.equal(containerStatus((await node.get("ready"))!)?.ready, true);
  assert.equal(containerStatus((await node.get("starting"))!)?.started, false);
  assert.equal(containerStatus((await node.get("starting"))!)?.ready, false);
  await node.advanceUntil("ready", (p) => !containerStatus(p)?.ready, { most: 10_000 });
  assert.equal(containerStatus((await node.get("starting"))!)?.started, false);
});

/** Answers the first bytes that come. */
function server(answer: string, heard: (text: string) => void = () => undefined): Duplex {
  const stream: Duplex = new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      heard(String(chunk));
      if (answer) stream.push(answer);
      done();
    },
  });
  return stream;
}
