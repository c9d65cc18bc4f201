import assert from "node:assert/strict";
import { test } from "node:test";
import { resolveUser } from "./user.ts";

const files = {
  passwd: "root:x:0:0:root:/root:/bin/sh\nweb:x:33:44:web:/var/www:/bin/false\nbroken\n",
  group: "root:x:0:\nwww:x:44:\nextra:x:50:web,other\nmore:x:51: other , web\n",
};
const base = {
  privileged: false,
  supplementalGroups: [],
  addCapabilities: [],
  dropCapabilities: [],
  readOnlyRootfs: false,
  noNewPrivileges: false,
  seccomp: "unconfined",
};

for (const [title, imageUser, security, expected] of [
  ["no user at all is root", "", {}, { uid: 0, gid: 0, supplementalGroups: [0], home: "/root" }],
  [
    "a name brings its group, memberships and home",
    "web",
    {},
    { uid: 33, gid: 44, supplementalGroups: [44, 50, 51], home: "/var/www" },
  ],
  [
    "a number that the image knows does too",
    "33",
    {},
    { uid: 33, gid: 44, supplementalGroups: [44, 50, 51], home: "/var/www" },
  ],
  ["a number that it does not know has group 0", "1234", {}, { uid: 1234, gid: 0, supplementalGroups: [0], home: "/" }],
  ["the image's group", "web:extra", {}, { uid: 33, gid: 50, supplementalGroups: [50, 51], home: "/var/www" }],
  ["the image's group by number", "1234:77", {}, { uid: 1234, gid: 77, supplementalGroups: [77], home: "/" }],
  [
    "runAsUser drops the image's group",
    "web:extra",
    { runAsUser: 1000 },
    { uid: 1000, gid: 0, supplementalGroups: [0], home: "/" },
  ],
  [
    "runAsGroup and supplemental groups",
    "web",
    { runAsGroup: 9, supplementalGroups: [7, 50] },
    { uid: 33, gid: 9, supplementalGroups: [9, 7, 50, 51], home: "/var/www" },
  ],
  [
    "Strict ignores the image's memberships",
    "web",
    { supplementalGroups: [7], supplementalGroupsPolicy: "Strict" as const },
    { uid: 33, gid: 44, supplementalGroups: [44, 7], home: "/var/www" },
  ],
] as const)
  test(`user: ${title}`, () => assert.deepEqual(resolveUser(imageUser, { ...base, ...security }, files), expected));

test("user: unknown names are refused by name", () => {
  assert.throws(
    () => resolveUser("nobody", base, files),
    /unable to find user nobody: no matching entries in passwd file/,
  );
  assert.throws(
    () => resolveUser("web:nogroup", base, files),
    /unable to find group nogroup: no matching entries in group file/,
  );
});
