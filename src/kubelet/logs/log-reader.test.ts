import assert from "node:assert/strict";
import { appendFile, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, it, type TestContext } from "node:test";
import { systemClock } from "#base";
import { type ReadLogOptions, readLog } from "./log-reader.ts";

const T = (n: number) => `2026-01-01T00:00:0${n}.00000000${n}Z`;
const SAMPLE = [
  `${T(1)} stdout F one`,
  `${T(2)} stdout P two `,
  `${T(2)} stderr F oops`,
  `${T(3)} stdout P is `,
  `${T(3)} stdout F long`,
  `${T(4)} stdout F `,
  "garbage",
  `${T(5)} stdout F last`,
  "",
].join("\n");

async function logFile(t: TestContext, content: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "slim-log-"));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, "0.log");
  await writeFile(path, content);
  return path;
}
const read = async (path: string, options: Partial<ReadLogOptions>) =>
  text(await readLog(path, { follow: false, timestamps: false, ...options }, { clock: systemClock }));

describe("readLog()", () => {
  const table: [string, Partial<ReadLogOptions>, string][] = [
    ["joins pieces and skips what is no log line", {}, "one\ntwo oops\nis long\n\nlast\n"],
    ["tail 0", { tailLines: 0 }, ""],
    ["tail 1", { tailLines: 1 }, "last\n"],
    ["tail more than there are", { tailLines: 50 }, "one\ntwo oops\nis long\n\nlast\n"],
    ["one stream", { stream: "stderr" }, "oops\n"],
    ["since", { since: Date.parse("2026-01-01T00:00:04Z") }, "\nlast\n"],
    ["limit in the middle of a line", { limitBytes: 6 }, "one\ntw"],
    ["limit 0", { limitBytes: 0 }, ""],
    [
      "times, once for each line",
      { timestamps: true, stream: "stdout" },
      `${T(1)} one\n${T(2)} two is long\n${T(4)} \n${T(5)} last\n`,
    ],
  ];
  for (const [name, options, expected] of table) {
    it(name, async (t) => assert.equal(await read(await logFile(t, SAMPLE), options), expected));
  }

  it("counts a line in pieces once for the tail", async (t) => {
    const path = await logFile(t, `${T(1)} stdout F a\n${T(2)} stdout P b1\n${T(2)} stdout F b2\n${T(3)} stdout F c\n`);
    assert.equal(await read(path, { tailLines: 2 }), "b1b2\nc\n");
  });

  it("finds the tail across blocks", async (t) => {
    const line = (n: number) => `${T(1)} stdout F ${String(n).padStart(6, "0")} ${"x".repeat(n % 300)}\n`;
    const path = await logFile(t, Array.from({ length: 5000 }, (_, n) => line(n)).join(""));
    for (const tailLines of [1, 400, 700, 4999, 5000]) {
      const lines = (await read(path, { tailLines })).trimEnd().split("\n");
      assert.equal(lines.length, tailLines);
      assert.equal(Number.parseInt(lines[0] ?? "", 10), 5000 - tailLines);
    }
  });

  it("gives a last line that has no end", async (t) => {
    assert.equal(await read(await logFile(t, `${T(1)} stdout F a\n${T(2)} stdout F b`), {}), "a\nb");
    assert.equal(await read(await logFile(t, `${T(1)} stdout F a\n${T(2)} stdout P b\n`), { tailLines: 1 }), "b");
  });

  it("shows offsets of zero as Z and pads digits", async (t) => {
    const path = await logFile(t, "2026-01-01T00:00:01.5+00:00 stdout F a\n2026-01-01T00:00:01.5+02:00 stdout F b\n");
    const expected = "2026-01-01T00:00:01.500000000Z a\n2026-01-01T00:00:01.500000000+02:00 b\n";
    assert.equal(await read(path, { timestamps: true }), expected);
  });

  it("rejects when there is no log", async () => {
    await assert.rejects(read("/nonexistent/0.log", {}), { code: "ENOENT" });
  });
});

describe("readLog() following", () => {
  const follow = async (path: string, options: Partial<ReadLogOptions> = {}) => {
    const state = { ended: false, notify: () => {} };
    const stream = await readLog(
      path,
      {
        follow: true,
        timestamps: false,
        ended: () => state.ended,
        onEnded(listener) {
          state.notify = listener;
          return { [Symbol.dispose]() {} };
        },
        ...options,
      },
      { clock: systemClock },
    );
    const end = () => {
      state.ended = true;
      state.notify();
    };
    return { stream, end, all: collect(stream) };
  };
  const collect = async (stream: Readable) => {
    let result = "";
    for await (const chunk of stream) result += chunk;
    return result;
  };

  it("gives what comes until the container ends, also in pieces of a line", async (t) => {
    const path = await logFile(t, `${T(1)} stdout F one\n`);
    const { end, all } = await follow(path);
    await appendFile(path, `${T(2)} std`);
    await systemClock.sleep(20);
    await appendFile(path, `out F two\n${T(3)} stdout F three\n`);
    await systemClock.sleep(20);
    await appendFile(path, `${T(4)} stdout F four\n`);
    end();
    assert.equal(await all, "one\ntwo\nthree\nfour\n");
  });

  it("loses nothing when the log is rotated, several times between two looks too", async (t) => {
    const path = await logFile(t, "");
    const { end, all } = await follow(path);
    const expected: string[] = [];
    for (let turn = 0; turn < 6; turn++) {
      for (let n = 0; n < 50; n++) {
        expected.push(`${turn}-${n}`);
        await appendFile(path, `${T(1)} stdout F ${turn}-${n}\n`);
      }
      await rename(path, `${path}.20260101-00000${turn}`);
      // The writer goes on with the renamed file until it is told to reopen.
      expected.push(`${turn}-late`);
      await appendFile(`${path}.20260101-00000${turn}`, `${T(1)} stdout F ${turn}-late\n`);
      await writeFile(path, "");
      if (turn % 2 === 0) await systemClock.sleep(15);
    }
    end();
    assert.deepEqual((await all).trimEnd().split("\n"), expected);
  });

  it("stops at the limit and on abort", async (t) => {
    const path = await logFile(t, `${T(1)} stdout F one\n`);
    assert.equal(await (await follow(path, { limitBytes: 2 })).all, "on");
    const abort = new AbortController();
    const { all } = await follow(path, { signal: abort.signal });
    setImmediate(() => abort.abort());
    await assert.rejects(all, { name: "AbortError" });
  });

  it("with a tail begins at the end", async (t) => {
    const path = await logFile(t, SAMPLE);
    const { end, all } = await follow(path, { tailLines: 1 });
    await appendFile(path, `${T(6)} stdout F more\n`);
    end();
    assert.equal(await all, "last\nmore\n");
  });
});
