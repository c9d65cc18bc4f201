import assert from "node:assert/strict";
import { test } from "node:test";
import { CelBudgetError, CelCompileError, compileCel, createCelBudget, createCelEnvironment, toCel } from "./mod.ts";

const env = createCelEnvironment({ object: "dyn", name: "string" });
const evaluate = (source: string, object: unknown = {}) =>
  compileCel(env, source).evaluate({ object: toCel(object), name: "n" }, createCelBudget());

const TRUE: readonly string[] = [
  "1 + 2 == 3 && name == 'n'",
  "[1, 2, 3].isSorted() && ['b', 'a'].sort() == ['a', 'b']",
  "[1, 2].sum() == 3 && [1.5, 2.5].sum() == 4.0",
  "['a', 'c'].max() == 'c' && [3, 1].min() == 1",
  "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2",
  "[1, 2, 1].distinct() == [1, 2] && [1, 2, 3].slice(1, 3) == [2, 3]",
  "lists.range(3) == [0, 1, 2]",
  "sets.contains([1, 2, 3], [2, 1]) && sets.equivalent([1, 2], [2, 1, 1]) && sets.intersects([1], [1, 2])",
  "'abc123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2'] && 'a1b2'.findAll('[0-9]', 1) == ['1']",
  "'foo'.matches('^f+o{2}$') && matches('foo', 'o')",
  "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').add(quantity('500m')) == quantity('1')",
  "quantity('1k').asInteger() == 1000 && isQuantity('1Mi') && !isQuantity('1Foo')",
  "quantity('50k').sub(20) == quantity('49980') && quantity('1').compareTo(quantity('2')) == -1 && quantity('1').sign() == 1",
  "ip('2001:DB8::1') == ip('2001:db8::1') && ip('127.0.0.1').isLoopback() && ip('::1').family() == 6",
  "!ip.isCanonical('2001:DB8::1') && isIP('10.0.0.1') && !isIP('10.0.0.256') && !isIP('::ffff:1.2.3.4')",
  "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
  "cidr('192.168.1.77/24').masked() == cidr('192.168.1.0/24') && cidr('2001:db8:ffff::/33').masked().prefixLength() == 33",
  "string(cidr('2001:db8:8000::1/33').masked()) == '2001:db8:8000::/33'",
  "url('https://user@example.com:80/a b?x=1&x=2').getHost() == 'example.com:80'",
  "url('https://example.com:80/?x=1&x=2').getQuery() == {'x': ['1', '2']} && url('/a b').getEscapedPath() == '/a%20b'",
  "isURL('https://x/') && !isURL('../relative')",
  "!format.dns1123Label().validate('ok').hasValue() && format.named('uuid').hasValue()",
  "format.dns1123Label().validate('No').value()[0].startsWith('a lowercase RFC 1123 label')",
  "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('v1', true).major() == 1 && !isSemver('v1.0')",
  "'%s is %d, %.2f'.format(['x', 3, 1.5]) == 'x is 3, 1.50' && 'abc'.charAt(1) == 'b' && 'aab'.replace('a', 'c', 1) == 'cab'",
  "optional.of(1).optMap(x, x + 1).value() == 2 && !optional.none().hasValue()",
  "[1, 2].all(i, v, v == i + 1) && {'a': 1}.transformList(k, v, k) == ['a']",
  "duration('1h') > duration('59m') && timestamp('2026-01-01T00:00:00Z') < timestamp('2026-01-02T00:00:00Z')",
  "string(timestamp('2026-01-01T00:00:00Z')) == '2026-01-01T00:00:00Z' && int(timestamp('1970-01-01T00:01:00Z')) == 60",
  "1 < 1.5 && dyn(1) == 1.0",
];

for (const source of TRUE) test(`CEL: ${source}`, () => assert.equal(evaluate(source), true));

test("CEL over JSON: whole numbers are int, absent fields are told by has()", () => {
  const object = { spec: { replicas: 3, tags: ["a"], labels: { x: "y" } } };
  assert.equal(evaluate("object.spec.replicas == 3 && !has(object.spec.nothing)", object), true);
  assert.equal(evaluate("object.spec.?nothing.orValue('none') == 'none'", object), true);
  assert.equal(evaluate("object.spec.labels.all(k, k == 'x') && 'x' in object.spec.labels", object), true);
  assert.throws(() => evaluate("object.spec.nothing", object), /no such key: nothing/);
});

const ERRORS: readonly (readonly [string, string])[] = [
  [
    "nothing == 1",
    "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nothing' (in container '')\n | nothing == 1\n | ^",
  ],
  [
    "name == 1",
    "compilation failed: ERROR: <input>:1:6: found no matching overload for '_==_' applied to '(string, int)'\n | name == 1\n | .....^",
  ],
  [
    "name.size(2)",
    "compilation failed: ERROR: <input>:1:10: found no matching overload for 'size' applied to 'string.(int)'\n | name.size(2)\n | .........^",
  ],
];
for (const [source, text] of ERRORS)
  test(`CEL: ${source} is refused as cel-go does`, () =>
    assert.throws(
      () => compileCel(env, source),
      (error) => error instanceof CelCompileError && error.message === text,
    ));

test("an expression that costs too much is stopped", () => {
  const items = Array.from({ length: 300 }, (_, i) => i);
  const source = "object.items.all(a, object.items.all(b, object.items.all(c, a + b + c >= 0)))";
  assert.throws(() => evaluate(source, { items }), CelBudgetError);
});

test("regular expressions take linear time", () => {
  assert.equal(evaluate("object.text.matches('^(a+)+$')", { text: `${"a".repeat(5_000)}!` }), false);
});
