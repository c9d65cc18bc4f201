import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import { request } from "node:https";
import { startCluster } from "../../src/mod.ts";
import { startInstance, type TestInstance } from "../support/instance.ts";
import { kubectlSlim } from "../kubectl-slim/support.ts";

let instance: TestInstance;
let host: string;
let token: string;

before(async () => {
  const port = await freePort();
  host = `tcp://127.0.0.1:${port}`;
  instance = await startInstance({ SLIM_TCP_ADDR: `127.0.0.1:${port}` });
  token = (await instance.slim("token")).stdout.trim();
});
after(() => instance?.[Symbol.asyncDispose]());

/** Of a program that has nothing of the instance but the address and the token. */
const outside = () => ({ PATH: process.env.PATH, SLIM_KUBE_HOST: host, SLIM_KUBE_TOKEN: token });

test("kubectl-slim reaches an instance of another host by the token alone", async () => {
  const { stdout, stderr, code } = await kubectlSlim(["get", "ns", "default", "-o", "name"], outside());
  assert.deepEqual({ stdout, stderr, code }, { stdout: "namespace/default\n", stderr: "", code: 0 });
});

test("slim's own commands go the same way", async () => {
  const { stdout } = await instance.slim("image", "ls", "-q");
  const far = await runSlim(["image", "ls", "-q"], outside());
  assert.deepEqual(far, { code: 0, stdout, stderr: "" });
});

test("a program embeds a view of it", async () => {
  await using cluster = await startCluster({ join: { host, token } });
  await cluster.apply("{ apiVersion: v1, kind: ConfigMap, metadata: { name: far }, data: { a: b } }");
  assert.match((await cluster.why("configmap/far")).text, /is as it should be/);
});

test("a token of another instance is not trusted, and sends nothing", async () => {
  const other = token.replace(/^slim1\.[0-9a-f]{64}/, `slim1.${"0".repeat(64)}`);
  const { code, stderr } = await kubectlSlim(["get", "ns"], { ...outside(), SLIM_KUBE_TOKEN: other });
  assert.equal(code, 1);
  assert.match(stderr, /does not show the certificate authority that the token names/);
});

test("a wrong secret is refused", async () => {
  const wrong = token.replace(/\.[^.]+$/, ".wrong");
  const { code, stderr } = await kubectlSlim(["get", "ns"], { ...outside(), SLIM_KUBE_TOKEN: wrong });
  assert.deepEqual(
    { code, stderr },
    { code: 1, stderr: "error: You must be logged in to the server (Unauthorized)\n" },
  );
});

test("without a token neither the API nor the engine answers", async () => {
  for (const path of ["/api/v1/namespaces", "/engine/v1/info", "/engine/v1/containers"]) {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      request(`${host.replace("tcp", "https")}${path}`, { rejectUnauthorized: false }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on("error", reject)
        .end();
    });
    assert.equal(status, 403, path);
  }
});

test("a renewed token makes the old one worthless at once", async () => {
  const renewed = (await instance.slim("token", "--renew")).stdout.trim();
  assert.notEqual(renewed, token);
  assert.equal((await kubectlSlim(["get", "ns"], outside())).code, 1);
  token = renewed;
  assert.equal((await kubectlSlim(["get", "ns"], outside())).code, 0);
});

test("without SLIM_TCP_ADDR the token file counts for nothing", async () => {
  await using plain = await startInstance();
  const own = (await plain.slim("token")).stdout.trim();
  const { stdout } = await plain.slim("status", "-o", "json");
  const { api } = JSON.parse(stdout) as { api: string };
  assert.ok(api);
  const server = /server: "?(https:\/\/[^"\n]+)/.exec((await plain.slim("kubeconfig")).stdout)?.[1] ?? "";
  const { stderr } = await kubectlSlim(
    ["get", "ns", "--server", server, "--insecure-skip-tls-verify", "--token", own],
    { PATH: process.env.PATH },
  );
  assert.equal(stderr, "error: You must be logged in to the server (Unauthorized)\n");
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

async function runSlim(args: readonly string[], env: NodeJS.ProcessEnv) {
  const { execFile } = await import("node:child_process");
  const { join } = await import("node:path");
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    execFile(join(import.meta.dirname, "../../bin/slim"), args, { env }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}
