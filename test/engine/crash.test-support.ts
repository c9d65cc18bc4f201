import { silentLogger, systemClock, systemRandom } from "#base";
import type { Engine } from "#engine";
import { createNativeEngine, type NativeEngineOptions } from "#engine/native";
import { containerConfig, sandboxConfig } from "../../src/engine/contract.test-support.ts";
import type { Trial } from "./trial.test-support.ts";

/** What a process that is going to be killed has. */
export async function crashTrial(
  options: NativeEngineOptions,
  logDirectory: string,
): Promise<Pick<Trial, "sandbox" | "run"> & { engine: Engine }> {
  setInterval(() => {}, 1000); // engines never keep a process alive by themselves
  const engine = await createNativeEngine({ clock: systemClock, random: systemRandom, logger: silentLogger }, options);
  let serial = 0;
  return {
    engine,
    sandbox: async (changes) => (await engine.runSandbox(sandboxConfig(logDirectory, changes))).id,
    async run(sandboxId, command, changes) {
      const config = containerConfig("slim/busybox:latest", logDirectory, command, {
        name: `k${process.pid}-${serial++}`,
        ...changes,
      });
      const id = await engine.createContainer(sandboxId, config);
      await engine.startContainer(id);
      return id;
    },
  };
}
