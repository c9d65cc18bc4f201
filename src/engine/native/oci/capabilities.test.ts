import assert from "node:assert/strict";
import { test } from "node:test";
import { capabilitiesOf } from "./capabilities.ts";

const all = new Set(Array.from({ length: 41 }, (_, i) => i));
const security = {
  privileged: false,
  supplementalGroups: [],
  addCapabilities: [],
  dropCapabilities: [],
  readOnlyRootfs: false,
  noNewPrivileges: false,
  seccomp: "unconfined",
};

test("the default is Docker's fourteen", () => {
  assert.deepEqual(
    capabilitiesOf(security, all).map((name) => name.slice(4)),
    [
      "CHOWN",
      "DAC_OVERRIDE",
      "FOWNER",
      "FSETID",
      "KILL",
      "SETGID",
      "SETUID",
      "SETPCAP",
      "NET_BIND_SERVICE",
      "NET_RAW",
      "SYS_CHROOT",
      "MKNOD",
      "AUDIT_WRITE",
      "SETFCAP",
    ],
  );
});

test("drops come before adds; names in any form", () => {
  const get = (addCapabilities: string[], dropCapabilities: string[]) =>
    capabilitiesOf({ ...security, addCapabilities, dropCapabilities }, all);
  assert.deepEqual(get(["net_admin", "CAP_SYS_TIME"], ["ALL"]), ["CAP_NET_ADMIN", "CAP_SYS_TIME"]);
  assert.equal(get([], ["KILL"]).includes("CAP_KILL"), false);
  assert.equal(get(["ALL"], []).length, 41);
  assert.deepEqual(get(["ALL"], ["SYS_ADMIN"]).includes("CAP_SYS_ADMIN"), false);
});

test("nobody gets what this process may not hand on", () => {
  const bounding = new Set([...all].filter((number) => number !== 24));
  const granted = capabilitiesOf({ ...security, privileged: true, addCapabilities: ["SYS_RESOURCE"] }, bounding);
  assert.equal(granted.length, 40);
  assert.equal(granted.includes("CAP_SYS_RESOURCE"), false);
});
