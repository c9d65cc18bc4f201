import assert from "node:assert/strict";
import { test } from "node:test";
import { isEngineError } from "../../errors.ts";
import { formatReference, parseImageId, parseReference } from "./reference.ts";

const DIGEST = `sha256:${"7cc4b5aefd1d0cad".repeat(4)}`;

const normal: readonly [text: string, form: string][] = [
  ["busybox", "docker.io/library/busybox:latest"],
  ["busybox:1.36", "docker.io/library/busybox:1.36"],
  ["slim/busybox", "docker.io/slim/busybox:latest"],
  ["docker.io/busybox", "docker.io/library/busybox:latest"],
  ["index.docker.io/busybox", "docker.io/library/busybox:latest"],
  ["localhost/a", "localhost/a:latest"],
  ["localhost:5000/a/b:c", "localhost:5000/a/b:c"],
  ["host:5000", "docker.io/library/host:5000"],
  ["registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"],
  ["Upper/name", "Upper/name:latest"],
  ["[::1]:5000/a", "[::1]:5000/a:latest"],
  ["a__b/c-d---e.f:T_a-g.1", "docker.io/a__b/c-d---e.f:T_a-g.1"],
  [`busybox@${DIGEST}`, `docker.io/library/busybox@${DIGEST}`],
  [`busybox:1.36@${DIGEST}`, `docker.io/library/busybox@${DIGEST}`],
];
for (const [text, form] of normal) {
  test(`${text} is ${form}`, () => assert.equal(formatReference(parseReference(text)), form));
}

const bad: readonly [text: string, why: string][] = [
  ["", "invalid reference format"],
  ["a b", "invalid reference format"],
  ["busybox:", "invalid reference format"],
  ["busybox:in valid", "invalid reference format"],
  ["../etc/passwd", "invalid reference format"],
  ["a//b", "invalid reference format"],
  ["-a", "invalid reference format"],
  ["a@sha256:123", "invalid reference format"],
  [`a@sha256:${"1".repeat(40)}`, "invalid checksum digest length"],
  [`a@md5:${"1".repeat(32)}`, "unsupported digest algorithm"],
  ["Busybox", "invalid reference format: repository name (library/Busybox) must be lowercase"],
  ["docker.io/a/B:c", "invalid reference format: repository name (a/B) must be lowercase"],
  ["a".repeat(64), `invalid repository name (${"a".repeat(64)}), cannot specify 64-byte hexadecimal strings`],
  [`x/${"y".repeat(300)}`, "repository name must not be more than 255 characters"],
  [`x/${"-a".repeat(50_000)}`, "invalid reference format"],
];
for (const [text, why] of bad) {
  test(`${text.slice(0, 80) || "the empty text"} is refused in the kubelet's words`, () => {
    const quoted = JSON.stringify(text);
    const message = `Failed to apply default image tag ${quoted}: couldn't parse image name ${quoted}: ${why}`;
    assert.throws(
      () => parseReference(text),
      (error) => isEngineError(error, "invalid-reference") && error.message === message,
    );
  });
}

test("parseImageId() takes a digest, its hexadecimal part, and the short form", () => {
  const hex = DIGEST.slice(7);
  assert.equal(parseImageId(DIGEST), hex);
  assert.equal(parseImageId(hex), hex);
  assert.equal(parseImageId(hex.slice(0, 12)), hex.slice(0, 12));
  assert.equal(parseImageId("sha256:xyz"), undefined);
  assert.equal(parseImageId("abcdef"), undefined);
});
