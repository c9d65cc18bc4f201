import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, rename } from "node:fs/promises";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { isEngineError } from "#engine";
import { exitOf } from "../../src/engine/contract.test-support.ts";
import { trial } from "./trial.test-support.ts";

/** Reads until the text has come, and gives all that was read. */
async function until(stream: Readable, wanted: RegExp, timeoutMs = 10_000): Promise<string> {
  let seen = "";
  const signal = AbortSignal.timeout(timeoutMs);
  while (!wanted.test(seen)) {
    const chunk = stream.read() as Buffer | null;
    if (chunk) seen += chunk.toString();
    else if (stream.readableEnded) throw new Error(`ended without ${wanted}: ${JSON.stringify(seen)}`);
    else await Promise.race([once(stream, "readable", { signal }), once(stream, "end", { signal })]);
  }
  return seen;
}

trial("exec with a terminal: size, input, exit code", async (t) => {
  const id = await t.run(await t.sandbox(), ["sleep", "1000"]);
  const session = await t.engine.exec(id, { command: ["sh"], stdin: true, stdout: true, stderr: false, tty: true });
  session.resize({ width: 132, height: 43 });
  await new Promise((resolve) => setTimeout(resolve, 200));
  session.stdin!.write("tty; stty size; exit 6\n");
  const output = await until(session.stdout!, /43 132/);
  assert.match(output, /\/dev\/pts\/\d/);
  assert.deepEqual(await session.done, { exitCode: 6 });
});

trial("exec with a terminal: all output arrives, and closing kills", async (t) => {
  const id = await t.run(await t.sandbox(), ["sleep", "1000"]);
  const counting = await t.engine.exec(id, {
    command: ["seq", "1", "20000"],
    stdin: false,
    stdout: true,
    stderr: false,
    tty: true,
  });
  assert.equal((await text(counting.stdout!)).trimEnd().split(/\r?\n/).length, 20_000);
  const endless = await t.engine.exec(id, {
    command: ["sleep", "7777"],
    stdin: true,
    stdout: true,
    stderr: false,
    tty: true,
  });
  await new Promise((resolve) => setTimeout(resolve, 200));
  endless.close();
  assert.notEqual((await endless.done).exitCode, 0);
  assert.equal(await t.sh(id, "ps -o args | grep -c '^sleep 7777$' || true"), "0");
});

trial("exec passes megabytes both ways", async (t) => {
  const id = await t.run(await t.sandbox(), ["sleep", "1000"]);
  const session = await t.engine.exec(id, { command: ["cat"], stdin: true, stdout: true, stderr: true, tty: false });
  const data = "0123456789abcdef".repeat(1 << 17);
  session.stdin!.end(data);
  assert.equal((await text(session.stdout!)) === data, true);
  assert.equal((await session.done).exitCode, 0);
});

trial("execSync: output is cut, a background process does not hold it, an unknown program is named", async (t) => {
  const id = await t.run(await t.sandbox(), ["sleep", "1000"]);
  const long = await t.engine.execSync(id, { command: ["seq", "1", "100000"], timeoutMs: 10_000, maxOutput: 1000 });
  assert.deepEqual([long.exitCode, long.stdout.length], [0, 1000]);
  const began = performance.now();
  const background = await t.engine.execSync(id, {
    command: ["sh", "-c", "sleep 30 & echo started"],
    timeoutMs: 20_000,
  });
  assert.deepEqual([background.exitCode, background.stdout], [0, "started\n"]);
  assert.ok(performance.now() - began < 5000);
  await assert.rejects(
    t.engine.execSync(id, { command: ["nosuch"], timeoutMs: 10_000 }),
    (error) =>
      isEngineError(error, "start-failed") &&
      /^failed to start exec "[0-9a-f]{64}": OCI runtime exec failed: exec failed: unable to start container process: exec: "nosuch": executable file not found in \$PATH$/.test(
        error.message,
      ),
  );
});

trial("attach: output, input and its end", async (t) => {
  const id = await t.create(
    await t.sandbox(),
    ["sh", "-c", "while read line; do echo got $line; echo err >&2; done; exit 4"],
    {
      stdin: true,
      stdinOnce: true,
    },
  );
  await t.engine.startContainer(id);
  const session = await t.engine.attach(id, { stdin: true, tty: false });
  session.stdin!.write("one\n");
  await until(session.stdout!, /got one/);
  await until(session.stderr!, /err/);
  session.stdin!.end();
  assert.deepEqual(await session.done, { exitCode: 4 });
});

trial("attach to a terminal", async (t) => {
  const id = await t.create(await t.sandbox(), ["sh"], { stdin: true, tty: true });
  await t.engine.startContainer(id);
  const session = await t.engine.attach(id, { stdin: true, tty: true });
  session.resize({ width: 100, height: 30 });
  session.stdin!.write("stty size\n");
  await until(session.stdout!, /30 100/);
  session.stdin!.write("exit 3\n");
  assert.deepEqual(await session.done, { exitCode: 3 });
});

trial("an attached viewer who does not read does not stop the container", async (t) => {
  const id = await t.run(await t.sandbox(), ["sh", "-c", "sleep 0.5; seq 1 300000"], { stdin: true });
  await t.engine.attach(id, { stdin: false, tty: false });
  assert.equal((await exitOf(t.engine, id)).exitCode, 0);
});

trial("connect reaches what listens on loopback only; a closed port is refused", async (t) => {
  const sandbox = await t.sandbox();
  const id = await t.run(sandbox, [
    "sh",
    "-c",
    "mkdir /w; echo hello > /w/index.html; exec httpd -f -p 127.0.0.1:8080 -h /w",
  ]);
  await t.sh(id, "for i in 1 2 3 4 5 6 7 8 9 10; do netstat -ltn | grep -q 8080 && exit 0; sleep 0.1; done; exit 1");
  const socket = await t.engine.connect(sandbox, 8080);
  socket.end("GET / HTTP/1.0\r\n\r\n");
  assert.match(await text(socket), /hello\n$/);
  await assert.rejects(t.engine.connect(sandbox, 9), /dial tcp 127\.0\.0\.1:9: connect: connection refused/);
});

trial("the log goes on in a new file after a rotation, no line lost", async (t) => {
  const id = await t.run(await t.sandbox(), [
    "sh",
    "-c",
    "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done",
  ]);
  const path = t.engine.container(id)!.config.logPath;
  await rename(path, `${path}.1`);
  await t.engine.reopenLog(id).catch(() => {}); // it may have ended by then, with all lines in the old file
  await exitOf(t.engine, id);
  const all = (await readFile(`${path}.1`, "utf8")) + (await readFile(path, "utf8").catch(() => ""));
  const text = all
    .trimEnd()
    .split("\n")
    .map((line) => line.split(" "))
    .map(([, , tag, ...words]) => words.join(" ") + (tag === "F" ? "\n" : ""));
  assert.deepEqual(
    text.join("").trimEnd().split("\n"),
    Array.from({ length: 3000 }, (_, i) => `line ${i + 1}`),
  );
});
