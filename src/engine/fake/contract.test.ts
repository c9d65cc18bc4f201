import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandom } from "#base";
import { engineContract } from "../contract.test-support.ts";
import { createFakeEngine } from "./mod.ts";

engineContract(
  "fake engine",
  async () => {
    const logDirectory = await mkdtemp(join(tmpdir(), "slim-fake-"));
    const engine = createFakeEngine({ clock: systemClock, random: systemRandom }, { logFiles: true });
    return { engine, logDirectory, dispose: () => rm(logDirectory, { recursive: true, force: true }) };
  },
  {
    image: "slim/busybox:latest",
    skip: {
      exec: "a fake container's exec follows a script, no command runs",
      restart: "a fake engine's state lives in memory",
    },
  },
);
