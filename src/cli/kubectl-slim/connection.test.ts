import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { defaultSocket, findTarget, kubeconfigPaths } from "./connection.ts";
import { editorOf } from "./commands/edit.ts";
import { parseSpec } from "./commands/cp.ts";
import type { Environment, FileAccess } from "./environment.ts";
import { parseFlags } from "./flags.ts";
import { GLOBAL_FLAGS } from "./program.ts";

const PLATFORMS = ["linux", "darwin", "win32"] as const;
type Platform = (typeof PLATFORMS)[number];
const HOMES: Readonly<Record<Platform, string>> = { linux: "/home/u", darwin: "/Users/u", win32: "C:\\Users\\u" };

/** A machine of a platform, with nothing on it but the given files. */
function machine(platform: Platform, env: Record<string, string>, files: Record<string, string> = {}): Environment {
  const access = {
    read: (name: string) => files[name] ?? assert.fail(`${name} was read`),
    exists: (name: string) => name in files,
  } as FileAccess;
  return {
    env,
    platform,
    path: platform === "win32" ? path.win32 : path.posix,
    home: HOMES[platform],
    files: access,
  } as Environment;
}

const flagsOf = (...words: string[]) => parseFlags(words, GLOBAL_FLAGS).flags;

const config = (server: string, context = "c") =>
  `apiVersion: v1\nkind: Config\ncurrent-context: ${context}\ncontexts: [{ name: ${context}, context: { cluster: ${context}, user: u, namespace: n } }]\nclusters: [{ name: ${context}, cluster: { server: "${server}" } }]\nusers: [{ name: u, user: { token: t } }]\n`;

for (const platform of PLATFORMS) {
  const join = platform === "win32" ? path.win32.join : path.posix.join;
  const own = join(HOMES[platform], ".kube", "config");
  const socket = defaultSocket(platform);

  test(`${platform}: a kubeconfig that is named goes before everything`, () => {
    const files = { [join(HOMES[platform], "k")]: config("https://named"), [own]: config("https://own"), [socket]: "" };
    const flags = flagsOf("--kubeconfig", join(HOMES[platform], "k"));
    assert.equal(findTarget(flags, machine(platform, { SLIM_KUBE_SOCKET: "/s" }, files)).server, "https://named");
  });

  test(`${platform}: KUBECONFIG names several files, separated as the platform does`, () => {
    const [a, b] = [join(HOMES[platform], "a"), join(HOMES[platform], "b")];
    const separator = platform === "win32" ? ";" : ":";
    const there = machine(
      platform,
      { KUBECONFIG: `${a}${separator}${b}` },
      { [a]: config("https://a", "a"), [b]: config("https://b", "b") },
    );
    assert.deepEqual(kubeconfigPaths(flagsOf(), there).paths, [a, b]);
    assert.equal(findTarget(flagsOf(), there).server, "https://a");
    assert.equal(findTarget(flagsOf("--context", "b"), there).server, "https://b");
  });

  test(`${platform}: SLIM_KUBE_SOCKET, then SLIM_KUBE_HOST, then the default socket, then ~/.kube/config`, () => {
    const token = `slim1.${"a".repeat(64)}.s`;
    const env = { SLIM_KUBE_SOCKET: "/my.sock", SLIM_KUBE_HOST: "tcp://10.0.0.1:7000", SLIM_KUBE_TOKEN: token };
    assert.equal(findTarget(flagsOf(), machine(platform, env)).server, "unix:/my.sock");
    const { SLIM_KUBE_SOCKET: _socket, ...host } = env;
    const target = findTarget(flagsOf(), machine(platform, host));
    assert.equal(target.server, "https://10.0.0.1:7000");
    assert.deepEqual([target.token, target.caHash, target.serverName], [token, "a".repeat(64), "kubernetes"]);
    assert.equal(findTarget(flagsOf(), machine(platform, {}, { [socket]: "" })).server, `unix:${socket}`);
    assert.equal(findTarget(flagsOf(), machine(platform, {}, { [own]: config("https://own") })).server, "https://own");
  });

  test(`${platform}: files that a kubeconfig names lie beside it`, () => {
    const text = config("https://x").replace(
      'server: "https://x"',
      'server: "https://x", certificate-authority: ca.pem',
    );
    const files = { [own]: text, [join(HOMES[platform], ".kube", "ca.pem")]: "PEM" };
    assert.equal(findTarget(flagsOf(), machine(platform, {}, files)).ca, "PEM");
  });
}

test("a host without anything to trust it by is refused", () => {
  assert.throws(() => findTarget(flagsOf(), machine("win32", { SLIM_KUBE_HOST: "tcp://h" })), { code: "no-authority" });
  assert.throws(() => findTarget(flagsOf(), machine("linux", { SLIM_KUBE_HOST: "ftp://h" })), { code: "invalid-host" });
});

test("the default socket of Windows is a named pipe", () => {
  assert.equal(defaultSocket("win32"), "\\\\.\\pipe\\slim-kube");
  assert.equal(findTarget(flagsOf(), machine("win32", {})).server, "unix:\\\\.\\pipe\\slim-kube");
});

const specs: readonly [platform: Platform, text: string, spec: object][] = [
  ["linux", "web:/etc/x", { pod: "web", path: "/etc/x" }],
  ["linux", "ns/web:/etc/x", { namespace: "ns", pod: "web", path: "/etc/x" }],
  ["linux", "./a:b", { path: "./a:b" }],
  ["linux", "file", { path: "file" }],
  ["linux", "C:\\x", { pod: "C", path: "\\x" }],
  ["win32", "C:\\x", { path: "C:\\x" }],
  ["win32", "c:/x", { path: "c:/x" }],
  ["win32", "web:/etc/x", { pod: "web", path: "/etc/x" }],
  ["darwin", "web:relative", { pod: "web", path: "relative" }],
];
for (const [platform, text, spec] of specs) {
  test(`${platform}: cp takes ${text} for ${JSON.stringify(spec)}`, () =>
    assert.deepEqual(parseSpec(text, machine(platform, {})), spec));
}

const editors: readonly [platform: Platform, env: Record<string, string>, command: string[]][] = [
  ["linux", {}, ["vi"]],
  ["darwin", { EDITOR: "nano" }, ["nano"]],
  ["win32", {}, ["notepad"]],
  ["win32", { EDITOR: '"C:\\Program Files\\Code\\code.exe" --wait' }, ["C:\\Program Files\\Code\\code.exe", "--wait"]],
  ["linux", { KUBE_EDITOR: "code --wait", EDITOR: "nano" }, ["code", "--wait"]],
];
for (const [platform, env, command] of editors) {
  test(`${platform}: edit with ${JSON.stringify(env)} runs ${command.join(" ")}`, () =>
    assert.deepEqual(editorOf({ platform, env }), command));
}
