import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { systemClock } from "#base";
import { isEngineError } from "../errors.ts";
import { boundingSet, examineHost } from "./host.ts";
import { loadLibc } from "./sys/libc.ts";
import { createRun } from "./sys/run.ts";

/** A directory with empty programs of these names. */
function programs(t: TestContext, ...names: string[]): string {
  const directory = mkdtempSync(join(tmpdir(), "slim-host-"));
  t.after(() => rmSync(directory, { recursive: true }));
  for (const name of names) {
    writeFileSync(join(directory, name), "");
    chmodSync(join(directory, name), 0o755);
  }
  return directory;
}

const root = process.getuid?.() === 0 ? {} : { skip: "the native engine needs root" };
const examine = async (directory: string, runtime?: string) =>
  examineHost(
    { run: createRun(systemClock), libc: await loadLibc() },
    { directories: [directory], ...(runtime === undefined ? {} : { runtime }) },
  );

test("missing programs are named with their packages", root, async (t) => {
  await assert.rejects(examine(programs(t, "ip", "setsid", "crun")), (error) => {
    return (
      isEngineError(error, "unsupported") &&
      error.message === "missing programs: conmon, nft" &&
      error.hint === "apt-get install conmon nftables"
    );
  });
});

test("no container runtime at all, and one that was asked for and is missing", root, async (t) => {
  const directory = programs(t, "conmon", "ip", "nft", "setsid");
  await assert.rejects(
    examine(directory),
    (error) => isEngineError(error, "unsupported") && error.hint === "apt-get install crun runc",
  );
  await assert.rejects(
    examine(directory, "youki"),
    (error) => isEngineError(error, "unknown-runtime") && /youki is not installed/.test(error.message),
  );
});

test("the runtime that was asked for is the default, the others stay usable", root, async (t) => {
  const directory = programs(t, "conmon", "ip", "nft", "setsid", "crun", "runc");
  assert.equal([...(await examine(directory, "runc")).runtimes.keys()][0], "runc");
  assert.deepEqual([...(await examine(directory)).runtimes.values()].at(-1), join(directory, "runc"));
  const own = [...(await examine(directory, "/opt/x/youki")).runtimes];
  assert.deepEqual(own[0], ["youki", "/opt/x/youki"]);
});

test("the bounding set is read by number", () => {
  assert.deepEqual([...boundingSet("Name:\tx\nCapBnd:\t0000000001000005\nCapAmb:\t0")], [0, 2, 24]);
  assert.deepEqual([...boundingSet("nothing")], []);
});
