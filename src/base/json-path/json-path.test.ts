import assert from "node:assert/strict";
import test from "node:test";
import { createJsonPath } from "./mod.ts";

const list = {
  kind: "List",
  items: [
    { metadata: { name: "a", labels: { "app.kubernetes.io/name": "x" } }, spec: { n: 1, tags: ["p", "q", "r"] } },
    { metadata: { name: "b" }, spec: { n: 2, on: true } },
  ],
};

const printed: readonly [template: string, text: string][] = [
  ["{.kind}", "List"],
  ["{$.kind}", "List"],
  ["kind is {.kind}!", "kind is List!"],
  ["{.items[*].metadata.name}", "a b"],
  ["{.items[0].metadata.name}", "a"],
  ["{.items[-1:].metadata.name}", "b"],
  ["{.items[0].spec.tags[1:3]}", "q r"],
  ["{.items[0].spec.tags[0:3:2]}", "p r"],
  ["{.items[*]['metadata.name','spec.n']}", "a b 1 2"],
  ["{.items[*].metadata['name']}", "a b"],
  ["{.items[0].metadata.labels.app\\.kubernetes\\.io/name}", "x"],
  ["{.items[0].metadata.labels['app\\.kubernetes\\.io/name']}", "x"],
  ["{..name}", "a b"],
  ['{.items[?(@.metadata.name=="b")].spec.n}', "2"],
  ["{.items[?(@.spec.n>=1)].metadata.name}", "a b"],
  ["{.items[?(@.spec.n!=1)].metadata.name}", "b"],
  ["{.items[?(@.spec.on)].metadata.name}", "b"],
  ['{range .items[*]}{.metadata.name}{"\\t"}{.spec.n}{"\\n"}{end}', "a\t1\nb\t2\n"],
  ["{range .items[*]}[{.metadata.name}] {end}", "[a] [b] "],
  ["{.items[0].spec}", '{"n":1,"tags":["p","q","r"]}'],
  ["{.nothing}", ""],
  ["{.nothing.at[0].all}", ""],
  ["{.kind} {.items[0].spec.n}", "List 1"],
];

for (const [template, text] of printed) {
  test(`jsonpath ${template}`, () => assert.equal(createJsonPath(template).print(list), text));
}

const relaxed: readonly [path: string, found: unknown[]][] = [
  ["kind", ["List"]],
  [".kind", ["List"]],
  ["{.kind}", ["List"]],
  ["{kind}", ["List"]],
  ["items[1].spec.on", [true]],
];
for (const [path, found] of relaxed) {
  test(`relaxed jsonpath ${path}`, () =>
    assert.deepEqual(createJsonPath(path, { relaxed: true }).find(list).flat(), found));
}

const wrong: readonly [template: string, message: RegExp][] = [
  ["{.items[0}", /unterminated array/],
  ["{.kind", /unclosed action/],
  ["{end}", /not in range, nothing to end/],
  ["{range .items[*]}{.x}", /unclosed action/],
  ["{.items[x]}", /invalid array index x/],
];
for (const [template, message] of wrong) {
  test(`jsonpath ${template} is refused`, () => assert.throws(() => createJsonPath(template), message));
}

test("a missing field is an error where it must be there", () => {
  assert.throws(
    () => createJsonPath("{.nothing}", { allowMissing: false }).print(list),
    /^JsonPathError: nothing is not found$/,
  );
});

test("an index beyond the end is an error", () => {
  assert.throws(() => createJsonPath("{.items[7]}").print(list), /array index out of bounds: index 7, length 2/);
});
