import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createSeededRandom } from "#base";
import { isEngineError } from "../../errors.ts";
import { tarOf } from "./fixtures.ts";
import { createTarHeaders, type TarEntry } from "./tar-headers.ts";

const root = mkdtempSync(join(tmpdir(), "slim-tar-"));
after(() => rmSync(root, { recursive: true, force: true }));

const LONG = `${"d".repeat(90)}/${"e".repeat(90)}/${"f".repeat(90)}`;
before(() => {
  mkdirSync(join(root, LONG, ".."), { recursive: true });
  writeFileSync(join(root, LONG), "long");
  writeFileSync(join(root, "plain"), "x".repeat(1500));
  writeFileSync(join(root, "last"), "xxx");
  writeFileSync(join(root, "sparse"), "start");
  for (let i = 1; i < 60; i++) {
    writeFileSync(join(root, "sparse"), "piece", { flag: "r+" });
    truncateSync(join(root, "sparse"), i << 20);
    writeFileSync(join(root, "sparse"), "piece", { flag: "a" });
  }
});

function scan(bytes: Buffer, chunk: () => number): TarEntry[] {
  const entries: TarEntry[] = [];
  const headers = createTarHeaders((entry) => entries.push(entry));
  for (let at = 0; at < bytes.length; ) {
    const size = Math.max(1, chunk());
    headers.push(bytes.subarray(at, at + size));
    at += size;
  }
  headers.end();
  return entries;
}

for (const format of ["gnu", "pax", "posix"]) {
  test(`archives of GNU tar in ${format} format are read the same in chunks of any size`, () => {
    const args = ["-c", `--format=${format}`, "--sparse", "-C", root, "plain", "sparse", LONG, "last"];
    const bytes = execFileSync("tar", args, { maxBuffer: 1 << 30 });
    const random = createSeededRandom(5);
    const whole = scan(bytes, () => bytes.length);
    assert.deepEqual(
      whole.map(({ name }) => name),
      ["plain", "sparse", LONG, "last"],
    );
    assert.equal(whole[0]?.size, 1500);
    assert.deepEqual(
      scan(bytes, () => Math.floor(random.next() * 2000)),
      whole,
    );
    assert.equal(bytes.toString("latin1", whole[3]!.offset, whole[3]!.offset + 3), "xxx");
  });
}

test("an archive cut anywhere inside an entry is called truncated", async () => {
  const bytes = await tarOf([{ name: "a", content: "x".repeat(600) }]);
  for (const end of [1, 511, 513, 1100, 1535]) {
    assert.throws(
      () => scan(bytes.subarray(0, end), () => 4096),
      (error) => isEngineError(error, "invalid-archive"),
      `${end}`,
    );
  }
});

test("sizes and pax records that mean nothing are refused", async () => {
  const flip = async (offset: number, value: string, entries = [{ name: "a", content: "x" }]) => {
    const bytes = await tarOf(entries);
    bytes.write(value, offset, "latin1");
    let sum = 8 * 32;
    for (let i = 0; i < 512; i++) if (i < 148 || i >= 156) sum += bytes[i]!;
    bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
    return bytes;
  };
  for (const bytes of [
    await flip(124, "99999999999"),
    await flip(124, "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
  ]) {
    assert.throws(
      () => scan(bytes, () => 512),
      (error) => isEngineError(error, "invalid-archive"),
    );
  }
  const extended = await tarOf([{ name: "a", content: "x", pax: { path: "b" } }]);
  extended.write("9999", 512, "latin1");
  assert.throws(() => scan(extended, () => 512), /pax header/);
});
