import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Container, Pod, PodSecurityContext, SecurityContext } from "#kinds";
import { securityRefusal, sysctlName } from "./admission.ts";
import { checkRunAsNonRoot, securityConfig } from "./security.ts";

const make = (podContext?: PodSecurityContext, own?: SecurityContext, more: Partial<Pod["spec"]> = {}) => {
  const container: Container = { name: "c", ...(own ? { securityContext: own } : {}) };
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace: "ns", uid: "u" },
    spec: { containers: [container], ...(podContext ? { securityContext: podContext } : {}), ...more },
  };
  return { pod, container };
};
const NOTHING = {
  privileged: false,
  supplementalGroups: [],
  addCapabilities: [],
  dropCapabilities: [],
  readOnlyRootfs: false,
  noNewPrivileges: false,
  seccomp: "unconfined",
};

describe("securityConfig()", () => {
  const table: [string, PodSecurityContext | undefined, SecurityContext | undefined, object][] = [
    ["nothing", undefined, undefined, {}],
    ["the pod's user", { runAsUser: 1, runAsGroup: 2 }, undefined, { runAsUser: 1, runAsGroup: 2 }],
    ["the container's user", { runAsUser: 1, runAsGroup: 2 }, { runAsUser: 0 }, { runAsUser: 0, runAsGroup: 2 }],
    [
      "groups",
      { fsGroup: 5, supplementalGroups: [6, 7], supplementalGroupsPolicy: "Strict" },
      undefined,
      { supplementalGroups: [5, 6, 7, 99], supplementalGroupsPolicy: "Strict" },
    ],
    [
      "capabilities",
      undefined,
      { capabilities: { add: ["NET_ADMIN"], drop: ["ALL"] } },
      { addCapabilities: ["NET_ADMIN"], dropCapabilities: ["ALL"] },
    ],
    ["no escalation", undefined, { allowPrivilegeEscalation: false }, { noNewPrivileges: true }],
    ["read-only root", undefined, { readOnlyRootFilesystem: true }, { readOnlyRootfs: true }],
    ["unmasked proc", undefined, { procMount: "Unmasked" }, { maskedPaths: [], readonlyPaths: [] }],
    ["the pod's seccomp", { seccompProfile: { type: "RuntimeDefault" } }, undefined, { seccomp: "runtime-default" }],
    [
      "a local seccomp profile",
      { seccompProfile: { type: "RuntimeDefault" } },
      { seccompProfile: { type: "Localhost", localhostProfile: "a/b.json" } },
      { seccomp: "/profiles/a/b.json" },
    ],
    [
      "privileged is without seccomp",
      { seccompProfile: { type: "RuntimeDefault" } },
      { privileged: true },
      { privileged: true, seccomp: "unconfined" },
    ],
    ["apparmor", { appArmorProfile: { type: "Localhost", localhostProfile: "x" } }, undefined, { apparmor: "x" }],
  ];
  for (const [name, podContext, own, expected] of table) {
    it(name, () => {
      const { pod, container } = make(podContext, own);
      const extraGroups = name === "groups" ? [99] : [];
      assert.deepEqual(securityConfig(pod, container, { seccompRoot: "/profiles", extraGroups }), {
        ...NOTHING,
        ...expected,
      });
    });
  }
  it("lets no profile leave its directory", () => {
    const { pod, container } = make(undefined, { seccompProfile: { type: "Localhost", localhostProfile: "../x" } });
    assert.throws(() => securityConfig(pod, container, { seccompRoot: "/profiles" }), /outside the directory/);
  });
});

describe("checkRunAsNonRoot()", () => {
  const where = '(pod: "p_ns(u)", container: c)';
  const table: [
    string,
    PodSecurityContext,
    SecurityContext,
    { uid?: number; username?: string },
    string | undefined,
  ][] = [
    [
      "root image",
      { runAsNonRoot: true },
      {},
      { uid: 0 },
      `container has runAsNonRoot and image will run as root ${where}`,
    ],
    [
      "image without a user",
      { runAsNonRoot: true },
      {},
      {},
      `container has runAsNonRoot and image will run as root ${where}`,
    ],
    [
      "runAsUser 0",
      {},
      { runAsNonRoot: true, runAsUser: 0 },
      { uid: 5 },
      `container's runAsUser breaks non-root policy ${where}`,
    ],
    [
      "named user",
      { runAsNonRoot: true },
      {},
      { username: "www" },
      `container has runAsNonRoot and image has non-numeric user (www), cannot verify user is non-root ${where}`,
    ],
    ["other user", { runAsNonRoot: true }, { runAsUser: 7 }, { uid: 0 }, undefined],
    ["numeric image user", { runAsNonRoot: true }, {}, { uid: 7 }, undefined],
    ["the container's own word", { runAsNonRoot: true }, { runAsNonRoot: false }, { uid: 0 }, undefined],
  ];
  for (const [name, podContext, own, image, message] of table) {
    it(name, () => {
      const { pod, container } = make(podContext, own);
      const check = () => checkRunAsNonRoot(pod, container, image);
      if (message) assert.throws(check, { message });
      else check();
    });
  }
});

describe("securityRefusal()", () => {
  const node = { apparmor: false, allowedUnsafeSysctls: ["net.core.*", "kernel.msgmax"] };
  const sysctl = (name: string, more: Partial<Pod["spec"]> = {}) =>
    securityRefusal(make({ sysctls: [{ name, value: "1" }] }, undefined, more).pod, node)?.message;
  const table: [string, string | undefined, string | undefined][] = [
    ["safe", sysctl("net.ipv4.tcp_syncookies"), undefined],
    ["with slashes", sysctl("net/ipv4/tcp_syncookies"), undefined],
    ["allowed by prefix", sysctl("net.core.somaxconn"), undefined],
    ["allowed by name", sysctl("kernel.msgmax"), undefined],
    ["unsafe", sysctl("kernel.shmall"), 'forbidden sysctl: "kernel.shmall" not allowlisted'],
    [
      "of the host's network",
      sysctl("net.ipv4.tcp_syncookies", { hostNetwork: true }),
      'forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host net enabled',
    ],
    [
      "of the host's IPC",
      sysctl("kernel.shm_rmid_forced", { hostIPC: true }),
      'forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host ipc enabled',
    ],
  ];
  for (const [name, found, expected] of table) it(`sysctl ${name}`, () => assert.equal(found, expected));
  it("has the reason SysctlForbidden", () =>
    assert.equal(securityRefusal(make({ sysctls: [{ name: "x", value: "" }] }).pod, node)?.reason, "SysctlForbidden"));
  it("names AppArmor where the host has none", () => {
    const { pod } = make({ appArmorProfile: { type: "RuntimeDefault" } });
    assert.deepEqual(securityRefusal(pod, node), {
      reason: "AppArmor",
      message: "Cannot enforce AppArmor: AppArmor is not enabled on the host",
    });
    assert.equal(securityRefusal(pod, { apparmor: true }), undefined);
  });
  it("reads both ways to write a name", () => {
    assert.equal(sysctlName("net/ipv4/conf/eth0.1/forwarding"), "net.ipv4.conf.eth0/1.forwarding");
    assert.equal(sysctlName("net.ipv4.conf.eth0/1.forwarding"), "net.ipv4.conf.eth0/1.forwarding");
  });
});
