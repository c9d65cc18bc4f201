import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { after, before, test } from "node:test";
import { nodeEnvironment } from "../../src/cli/kubectl-slim/node-environment.ts";
import { runKubectl } from "../../src/cli/kubectl-slim/program.ts";
import { startInstance, type TestInstance, until } from "../support/instance.ts";
import { kubectlSlim } from "./support.ts";

let instance: TestInstance;
let env: NodeJS.ProcessEnv;
let directory: string;
const pod =
  "{ apiVersion: v1, kind: Pod, metadata: { name: p }, spec: { terminationGracePeriodSeconds: 0, containers: [{ name: c, image: 'slim/busybox:latest', command: [sh, -c, 'mkdir -p /www && echo page > /www/index.html && httpd -f -p 8080 -h /www'] }] } }";

before(async () => {
  directory = mkdtempSync(join(tmpdir(), "slim-test-"));
  instance = await startInstance();
  env = { ...process.env, KUBECONFIG: instance.kubeconfig };
  writeFileSync(join(directory, "pod.yaml"), pod);
  const { code, stderr } = await kubectlSlim(["apply", "-f", join(directory, "pod.yaml")], env);
  assert.equal(code, 0, stderr);
  assert.equal(
    (await kubectlSlim(["wait", "pod/p", "--for=condition=Ready", "--timeout=60s"], env)).stdout,
    "pod/p condition met\n",
  );
});
after(async () => {
  await instance?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

test("exec passes input, both outputs and the exit code", async () => {
  const outcome = await kubectlSlim(["exec", "-i", "p", "--", "sh", "-c", "tr a-z A-Z; echo oops >&2; exit 4"], env, {
    stdin: "hello",
  });
  assert.deepEqual(outcome, { code: 4, stdout: "HELLO", stderr: "oops\ncommand terminated with exit code 4\n" });
});

test("cp takes a tree there and back, byte by byte", async () => {
  const tree = join(directory, "tree");
  mkdirSync(join(tree, "inner"), { recursive: true });
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 31) % 251));
  writeFileSync(join(tree, "inner/data.bin"), bytes);
  writeFileSync(join(tree, "note.txt"), "hi\n");
  assert.deepEqual(await kubectlSlim(["cp", tree, "p:/tmp"], env), { code: 0, stdout: "", stderr: "" });
  const back = join(directory, "back");
  assert.equal((await kubectlSlim(["cp", "p:/tmp/tree", back], env)).code, 0);
  assert.deepEqual(readFileSync(join(back, "inner/data.bin")), bytes);
  assert.equal(readFileSync(join(back, "note.txt"), "utf8"), "hi\n");
});

/** Runs a command that goes on until it is interrupted. */
function running(args: readonly string[]) {
  let text = "";
  let interrupt = () => {};
  const stdout = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString("utf8");
      done();
    },
  });
  const done = runKubectl(args, {
    ...nodeEnvironment(),
    env,
    stdin: Readable.from([]),
    stdout,
    stderr: stdout,
    onInterrupt(listener) {
      interrupt = listener;
      return { [Symbol.dispose]() {} };
    },
  });
  return { text: () => text, interrupt: () => interrupt(), done };
}

test("port-forward carries connections until it is interrupted", async () => {
  const forward = running(["port-forward", "pod/p", ":8080", "--address", "127.0.0.1"]);
  await until(() => forward.text().includes("Forwarding from"), "the forwarded port");
  const port = Number(/Forwarding from 127\.0\.0\.1:(\d+) -> 8080/.exec(forward.text())?.[1]);
  const socket = createConnection(port, "127.0.0.1");
  socket.write("GET / HTTP/1.0\r\n\r\n");
  let answer = "";
  for await (const chunk of socket) answer += String(chunk);
  assert.match(answer, /^HTTP\/1\.[01] 200[\s\S]*page\n$/);
  forward.interrupt();
  assert.equal(await forward.done, 0);
});

test("get -w prints what is there and every change under the same columns", async () => {
  const watch = running(["get", "configmap", "-w", "-l", "watched=yes"]);
  await kubectlSlim(["create", "configmap", "w", "--from-literal=a=b"], env);
  await kubectlSlim(["label", "configmap", "w", "watched=yes"], env);
  await until(() => /\bw +1 /.test(watch.text()), "the change");
  watch.interrupt();
  assert.equal(await watch.done, 0);
  assert.match(watch.text(), /^NAME +DATA +AGE\nw +1 +\d+s\n/);
});

test("logs -f ends with the container", async () => {
  await kubectlSlim(
    ["create", "job", "j", "--image=slim/busybox:latest", "--", "sh", "-c", "echo one; sleep 1; echo two"],
    env,
  );
  await until(async () => (await kubectlSlim(["logs", "job/j"], env)).code === 0, "the job's pod");
  assert.equal((await kubectlSlim(["logs", "-f", "job/j"], env)).stdout, "one\ntwo\n");
});

test("edit sends what was changed, and says so when nothing was", async () => {
  await kubectlSlim(["create", "configmap", "e", "--from-literal=k=old"], env);
  const change = (from: string, to: string) => ({
    async runEditor(_command: readonly string[], file: string) {
      writeFileSync(file, readFileSync(file, "utf8").replace(from, to));
      return 0;
    },
  });
  assert.equal(
    (await kubectlSlim(["edit", "configmap/e"], env, change("k: old", "k: new"))).stdout,
    "configmap/e edited\n",
  );
  assert.equal((await kubectlSlim(["get", "configmap/e", "-o", "jsonpath={.data.k}"], env)).stdout, "new");
  assert.equal(
    (await kubectlSlim(["edit", "configmap/e"], env, change("", ""))).stderr,
    "Edit cancelled, no changes made.\n",
  );
  const windows = { ...change("k: new\r\n", "k: newer\r\n"), platform: "win32" as const };
  assert.equal((await kubectlSlim(["edit", "configmap/e"], env, windows)).stdout, "configmap/e edited\n");
  assert.equal((await kubectlSlim(["get", "configmap/e", "-o", "jsonpath={.data.k}"], env)).stdout, "newer");
});
