import assert from "node:assert/strict";
import test from "node:test";
import { parseManifest } from "./manifest.ts";

const values: readonly [yaml: string, value: unknown][] = [
  ["0644", 420],
  ["0x1f", 31],
  ["yes", true],
  ["off", false],
  ['"yes"', "yes"],
  ["2026-01-01", "2026-01-01"],
  ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"],
  ["12:30", "12:30"],
  ["1e3", 1000],
  ["~", null],
  ["plain", "plain"],
];
for (const [yaml, value] of values) {
  test(`parseManifest() reads ${yaml} as kubectl does`, () => {
    const [object] = parseManifest(`apiVersion: v1\nkind: X\nvalue: ${yaml}\n`, "test");
    assert.deepEqual(object?.value, value);
  });
}

test("parseManifest() merges what << names", () => {
  const [object] = parseManifest("apiVersion: v1\nkind: X\nbase: &b { a: 1 }\nmore: { <<: *b, c: 2 }\n", "test");
  assert.deepEqual(object?.more, { a: 1, c: 2 });
});

test("parseManifest() takes lists apart and skips empty documents", () => {
  const objects = parseManifest(
    "---\n---\napiVersion: v1\nkind: List\nitems:\n- { apiVersion: v1, kind: A }\n- { apiVersion: v1, kind: B }\n",
    "test",
  );
  assert.deepEqual(
    objects.map(({ kind }) => kind),
    ["A", "B"],
  );
});

test("parseManifest() names the source and the line of a fault", () => {
  assert.throws(() => parseManifest("apiVersion: v1\nkind: [", "a.yaml"), /error parsing a\.yaml: line/);
  assert.throws(() => parseManifest("kind: X", "a.yaml"), /error parsing a\.yaml: line 1: apiVersion not set/);
});
