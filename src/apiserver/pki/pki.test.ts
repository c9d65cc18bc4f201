import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createFakeClock } from "#base";
import { loadOrCreatePki } from "./pki.ts";

const clock = createFakeClock();

function withDir(fn: (dir: string) => void): void {
  const dir = mkdtempSync(join(tmpdir(), "pki-"));
  try {
    fn(join(dir, "pki"));
  } finally {
    rmSync(dir, { recursive: true });
  }
}

test("loadOrCreatePki() makes private files that a second start reads unchanged", () =>
  withDir((dir) => {
    const first = loadOrCreatePki(dir, { clock, ips: ["10.96.0.1"] });
    first.node("node-1");
    for (const name of readdirSync(dir)) assert.equal(statSync(join(dir, name)).mode & 0o777, 0o600, name);
    const second = loadOrCreatePki(dir, { clock, ips: ["10.96.0.1"] });
    assert.deepEqual(second.serving, first.serving);
    assert.deepEqual(second.admin, first.admin);
    assert.deepEqual(second.node("node-1"), first.node("node-1"));
    assert.equal(second.serviceAccountKey, first.serviceAccountKey);
  }));

test("the certificates chain to the authority and carry names and groups", () => {
  const pki = loadOrCreatePki(undefined, { clock, names: ["host.example"], ips: ["10.96.0.1", "fd00::1"] });
  const ca = new X509Certificate(pki.caCertificate);
  const serving = new X509Certificate(pki.serving.cert);
  assert.equal(ca.ca, true);
  assert.equal(serving.ca, false);
  assert.ok(serving.verify(ca.publicKey));
  assert.ok(serving.checkIssued(ca));
  assert.equal(serving.checkHost("kubernetes.default.svc"), "kubernetes.default.svc");
  assert.equal(serving.checkHost("host.example"), "host.example");
  for (const ip of ["127.0.0.1", "10.96.0.1", "fd00::1"]) assert.equal(serving.checkIP(ip), ip);
  assert.equal(new X509Certificate(pki.admin.cert).subject, "O=system:masters\nCN=kubernetes-admin");
  assert.equal(new X509Certificate(pki.node("n1").cert).subject, "O=system:nodes\nCN=system:node:n1");
  assert.ok(new X509Certificate(pki.frontProxyClient().cert).checkIssued(new X509Certificate(pki.frontProxyCa.cert)));
});

test("the serving certificate is made again when a name is new or it nears its end", () =>
  withDir((dir) => {
    const first = loadOrCreatePki(dir, { clock, ips: ["10.0.0.1"] });
    const moved = loadOrCreatePki(dir, { clock, ips: ["10.0.0.2"] });
    assert.notEqual(moved.serving.cert, first.serving.cert);
    assert.equal(moved.caCertificate, first.caCertificate);
    const late = createFakeClock(clock.now() + 3300 * 24 * 3600 * 1000);
    assert.notEqual(loadOrCreatePki(dir, { clock: late, ips: ["10.0.0.2"] }).serving.cert, moved.serving.cert);
  }));

test("a damaged file is replaced, and what an old authority signed too", () =>
  withDir((dir) => {
    const first = loadOrCreatePki(dir, { clock });
    writeFileSync(join(dir, "ca.crt"), "garbage");
    const second = loadOrCreatePki(dir, { clock });
    assert.notEqual(second.caCertificate, first.caCertificate);
    assert.ok(new X509Certificate(second.admin.cert).checkIssued(new X509Certificate(second.caCertificate)));
    assert.equal(readFileSync(join(dir, "ca.crt"), "utf8"), second.caCertificate);
  }));

test("node() refuses names that are not node names", () => {
  assert.throws(() => loadOrCreatePki(undefined, { clock }).node("../x"), /not a node name/);
});
