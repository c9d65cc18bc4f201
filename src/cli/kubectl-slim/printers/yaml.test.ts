import assert from "node:assert/strict";
import test from "node:test";
import { parse } from "yaml";
import { toYaml } from "./yaml.ts";

// as kubectl v1.35 prints them
const values: readonly [value: unknown, yaml: string][] = [
  ["plain", "v: plain\n"],
  ["", 'v: ""\n'],
  ["yes", 'v: "yes"\n'],
  ["1", 'v: "1"\n'],
  ["1e3", 'v: "1e3"\n'],
  ["2026-01-01T00:00:00Z", 'v: "2026-01-01T00:00:00Z"\n'],
  ["null", 'v: "null"\n'],
  ["a: b", "v: 'a: b'\n"],
  ["a #b", "v: 'a #b'\n"],
  ["it's", "v: it's\n"],
  ["*x", "v: '*x'\n"],
  ["- x", "v: '- x'\n"],
  ["a\tb", 'v: "a\\tb"\n'],
  ["a\nb\n", "v: |\n  a\n  b\n"],
  ["a\nb", "v: |-\n  a\n  b\n"],
  ["x  \ny", 'v: "x  \\ny"\n'],
  ["\n", "v: |2+\n\n"],
  ["a\n\n", "v: |+\n  a\n\n"],
  ["a\r\nb", 'v: "a\\r\\nb"\n'],
  [" lead", "v: ' lead'\n"],
  ["grüße ☃", "v: grüße ☃\n"],
  [null, "v: null\n"],
  [true, "v: true\n"],
  [1.5, "v: 1.5\n"],
  [[], "v: []\n"],
  [{}, "v: {}\n"],
  [["a", "b"], "v:\n- a\n- b\n"],
  [[{ b: 1, a: [2] }], "v:\n- a:\n  - 2\n  b: 1\n"],
  [[["x"]], "v:\n- - x\n"],
  [
    "0/1 nodes are available: 1 node(s) had untolerated taint(s). preemption: 0/1 nodes are available: 1 Preemption is not helpful.",
    "v: '0/1 nodes are available: 1 node(s) had untolerated taint(s). preemption: 0/1 nodes\n  are available: 1 Preemption is not helpful.'\n",
  ],
];

for (const [value, yaml] of values) {
  test(`toYaml() writes ${JSON.stringify(value)}`, () => assert.equal(toYaml({ v: value }), yaml));
}

test("toYaml() writes what reads back the same", () => {
  for (const [value] of values) {
    if (value === "\n") continue; // a line break alone reads back as two by the rules of YAML 1.2
    assert.deepEqual(parse(toYaml({ v: value })), { v: value });
  }
});

test("toYaml() sorts keys by their letters and numbers", () => {
  assert.deepEqual(toYaml({ b: 1, a10: 1, a2: 1, "1": 1, B: 1 }).match(/^[^:]+/gm), ['"1"', "B", "a2", "a10", "b"]);
});
