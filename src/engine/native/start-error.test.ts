import assert from "node:assert/strict";
import { test } from "node:test";
import { startMessage } from "./start-error.ts";

for (const [raw, command, message] of [
  [
    "executable file `nosuch` not found in $PATH: No such file or directory",
    ["nosuch"],
    'exec: "nosuch": executable file not found in $PATH',
  ],
  [
    "executable file `/no/such` not found in $PATH: No such file or directory",
    ["/no/such"],
    'exec: "/no/such": stat /no/such: no such file or directory',
  ],
  ["open executable: Permission denied", ["/etc/passwd"], 'exec: "/etc/passwd": permission denied'],
  [
    'time="2026-11-30T23:20:46Z" level=error msg="runc create failed: unable to start container process: exec: \\"nosuch\\": executable file not found in $PATH"',
    ["nosuch"],
    'exec: "nosuch": executable file not found in $PATH',
  ],
  [
    "2026-11-30T23:20:46.000000Z: mount `/a` to `/b`: No such file or directory\n",
    ["sh"],
    "mount `/a` to `/b`: No such file or directory",
  ],
  [
    'time="2026-11-30T23:20:46Z" level=error msg="runc create failed: unable to apply cgroup configuration: no space left on device"',
    ["sh"],
    "unable to apply cgroup configuration: no space left on device",
  ],
] as const)
  test(`a runtime's complaint becomes: ${message}`, () => assert.equal(startMessage(raw, command), message));
