import assert from "node:assert/strict";
import test from "node:test";
import { scanJson } from "./json-scan.ts";

const BAD: readonly (readonly [text: string, error: string])[] = [
  ["", "unexpected end of JSON input"],
  ["{", "unexpected end of JSON input"],
  ['{"a', "unexpected end of JSON input"],
  ["a: b", "invalid character 'a' looking for beginning of value"],
  ["\u0000", "invalid character '\\x00' looking for beginning of value"],
  ["\u0081", "invalid character '\\u0081' looking for beginning of value"],
  ['{"a":1}{"b":2}', "invalid character '{' after top-level value"],
  ["{a:1}", "invalid character 'a' looking for beginning of object key string"],
  ['{"a" 1}', "invalid character '1' after object key"],
  ['{"a":1 "b":2}', "invalid character '\"' after object key:value pair"],
  ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
  ["[1 2]", "invalid character '2' after array element"],
  ["[1,]", "invalid character ']' looking for beginning of value"],
  ["trUe", "invalid character 'U' in literal true (expecting 'u')"],
  ["-x", "invalid character 'x' in numeric literal"],
  ["1.x", "invalid character 'x' after decimal point in numeric literal"],
  ["1ex", "invalid character 'x' in exponent of numeric literal"],
  ['"\\x"', "invalid character 'x' in string escape code"],
  ['"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"],
  ['"a\nb"', "invalid character '\\n' in string literal"],
];

for (const [text, error] of BAD)
  test(`scanJson() says of ${JSON.stringify(text)}: ${error}`, () => assert.equal(scanJson(text).error, error));

test("scanJson() finds fields that stand twice, wherever they are, each once", () => {
  const text = '{"a":1,"a":2,"a":3,"m":{"n":"x","n":"y"},"l":[{"c":1},{"c":1,"c":2}],"\\u0061b":1,"ab":2}';
  assert.deepEqual(scanJson(text), { duplicates: ["a", "m.n", "l[1].c", "ab"] });
});

test("scanJson() has nothing to say of good JSON", () => {
  for (const text of ["null", " [ 1.5e+3 , -0, true ] \n", '{"a":{"b":[]},"b":"\\ud83d\\ude00"}'])
    assert.deepEqual(scanJson(text), { duplicates: [] });
});
