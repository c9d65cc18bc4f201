import assert from "node:assert/strict";
import test from "node:test";
import {
  addQuantity,
  compareQuantity,
  formatQuantity,
  parseQuantity,
  quantityMilliValue,
  quantityValue,
} from "./quantity.ts";
import { formatSelector, matchesLabels, matchesSelector } from "./selector.ts";

test("matchesSelector() follows meta/v1", () => {
  const app = { matchLabels: { app: "web" } };
  const term = (operator: string, values?: string[]) => ({
    matchExpressions: [{ key: "tier", operator, ...(values ? { values } : {}) }],
  });
  assert.equal(matchesSelector(undefined, {}), false);
  assert.equal(matchesSelector({}, undefined), true);
  assert.equal(matchesSelector(app, { app: "web", x: "y" }), true);
  assert.equal(matchesSelector(app, { app: "db" }), false);
  assert.equal(matchesSelector(term("In", ["a", "b"]), { tier: "b" }), true);
  assert.equal(matchesSelector(term("In", ["a"]), {}), false);
  assert.equal(matchesSelector(term("NotIn", ["a"]), {}), true);
  assert.equal(matchesSelector(term("NotIn", ["a"]), { tier: "a" }), false);
  assert.equal(matchesSelector(term("Exists"), { tier: "" }), true);
  assert.equal(matchesSelector(term("DoesNotExist"), { tier: "" }), false);
  assert.equal(matchesLabels({ a: "b" }, undefined), false);
  assert.equal(formatSelector({ ...term("In", ["b", "a"]), ...app }), "app=web,tier in (a,b)");
});

test("quantities are read, compared, added and printed in canonical form", () => {
  const canonical = (text: string) => formatQuantity(parseQuantity(text)!);
  for (const [text, expected] of [
    ["0.5", "500m"],
    ["1024Mi", "1Gi"],
    ["1000m", "1"],
    ["1500", "1500"],
    ["2000", "2k"],
    ["1e3", "1e3"],
    ["0", "0"],
    ["1.5Gi", "1536Mi"],
    ["100", "100"],
    ["-1", "-1"],
    ["1Ki", "1Ki"],
    ["0.5Ki", "512"],
  ] as const)
    assert.equal(canonical(text), expected, text);
  assert.equal(parseQuantity("1.2.3"), undefined);
  assert.equal(parseQuantity("abc"), undefined);
  assert.equal(quantityValue("1Gi"), 2 ** 30);
  assert.equal(quantityMilliValue("250m"), 250);
  assert.equal(quantityMilliValue("0.0001"), 1);
  assert.equal(addQuantity("250m", "1"), "1250m");
  assert.equal(addQuantity("0", "1Gi"), "1Gi");
  assert.ok(compareQuantity("1Gi", "1G") > 0);
});
