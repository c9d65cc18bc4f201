import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultSeccompProfile } from "./default-seccomp.ts";
import { seccompFor } from "./seccomp.ts";

type Rule = { names: string[]; action: string; args?: unknown[]; errnoRet?: number };
const machine = { arch: "x64", kernel: "6.1.0-13-amd64" };
const rules = (capabilities: string[], profile = defaultSeccompProfile, at = machine) =>
  (seccompFor(profile, capabilities, at) as { syscalls: Rule[] }).syscalls;
const allowed = (list: Rule[], name: string) =>
  list.some((rule) => rule.names.includes(name) && rule.action === "SCMP_ACT_ALLOW" && !rule.args);

test("the default profile forbids what reaches the host, and allows ordinary programs", () => {
  const plain = rules([]);
  for (const name of [
    "mount",
    "unshare",
    "setns",
    "bpf",
    "init_module",
    "kexec_load",
    "keyctl",
    "io_uring_setup",
    "clone",
    "reboot",
    "swapon",
    "pivot_root",
  ])
    assert.equal(allowed(plain, name), false, name);
  for (const name of [
    "read",
    "openat2",
    "clone3",
    "execve",
    "futex_waitv",
    "socket",
    "ptrace",
    "chown",
    "memfd_create",
    "epoll_pwait2",
    "rseq",
    "landlock_create_ruleset",
  ])
    assert.equal(allowed(plain, name), name !== "clone3", name);
  assert.deepEqual(plain.find((rule) => rule.names.includes("clone3"))?.errnoRet, 38);
});

test("a capability brings its calls along", () => {
  assert.equal(allowed(rules(["CAP_SYS_ADMIN"]), "mount"), true);
  assert.equal(allowed(rules(["CAP_SYS_ADMIN"]), "clone3"), true);
  assert.equal(allowed(rules(["CAP_SYS_CHROOT"]), "chroot"), true);
  assert.equal(allowed(rules(["CAP_SYS_CHROOT"]), "mount"), false);
});

test("conditions of a profile: architectures and kernels, included and excluded", () => {
  const profile = {
    defaultAction: "SCMP_ACT_ERRNO",
    syscalls: [
      { names: ["a"], action: "SCMP_ACT_ALLOW", includes: { minKernel: "4.8" } },
      { names: ["b"], action: "SCMP_ACT_ALLOW", includes: { minKernel: "6.2" } },
      { names: ["c"], action: "SCMP_ACT_ALLOW", includes: { arches: ["arm64"] } },
      { names: ["d"], action: "SCMP_ACT_ALLOW", excludes: { arches: ["arm64"] } },
      { names: ["e"], action: "SCMP_ACT_ALLOW", excludes: { caps: ["CAP_X", "CAP_Y"] } },
      { name: "f", action: "SCMP_ACT_ALLOW" },
    ],
  };
  assert.deepEqual(
    rules(["CAP_Y"], profile).flatMap((rule) => rule.names),
    ["a", "d", "f"],
  );
  assert.deepEqual(
    rules([], profile, { arch: "arm64", kernel: "6.2.1" }).flatMap((rule) => rule.names),
    ["a", "b", "c", "e", "f"],
  );
});

test("the architectures are this machine's", () => {
  assert.deepEqual(seccompFor(defaultSeccompProfile, [], machine).architectures, [
    "SCMP_ARCH_X86_64",
    "SCMP_ARCH_X86",
    "SCMP_ARCH_X32",
  ]);
  assert.deepEqual(seccompFor(defaultSeccompProfile, [], { ...machine, arch: "arm64" }).architectures, [
    "SCMP_ARCH_AARCH64",
    "SCMP_ARCH_ARM",
  ]);
});
