import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger, silentLogger, systemClock, systemRandom } from "#base";
import type { Engine } from "#engine";
import { createNativeEngine, type NativeEngineOptions } from "#engine/native";
import type { ContractSubject } from "../../src/engine/contract.test-support.ts";

/** Images are made once a test file; each engine has a directory of its own for everything else. */
const shared = await mkdtemp(join(tmpdir(), "slim-engine-images-"));
process.once("exit", () => rmSync(shared, { recursive: true, force: true }));

export interface NativeSubject extends ContractSubject {
  readonly directory: string;
  readonly options: NativeEngineOptions;
}

let serial = 0;

/** A native engine with its own network, interfaces, control group and directories; disposing it purges it. */
export async function openNative(changes: Partial<NativeEngineOptions> = {}): Promise<NativeSubject> {
  const directory = await mkdtemp(join(tmpdir(), "slim-engine-"));
  const name = `t${process.pid}n${serial++}`;
  const options: NativeEngineOptions = {
    dataDir: join(directory, "data"),
    runDir: join(directory, "run"),
    imagesDir: shared,
    instanceId: name,
    podCIDR: `10.91.${(process.pid + serial) % 256}.0/24`,
    interfacePrefix: `t${process.pid % 100_000}${String.fromCharCode(97 + (serial % 26))}`,
    cgroupParent: `/slim-test-${name}`,
    ...changes,
  };
  const logger = process.env.SLIM_TEST_LOG
    ? createLogger(console.error, { now: Date.now, level: "debug" })
    : silentLogger;
  const start = () => createNativeEngine({ clock: systemClock, random: systemRandom, logger }, options);
  const open: Engine[] = [await start()];
  const engine = open[0]!;
  return {
    engine,
    directory,
    options,
    logDirectory: join(directory, "logs"),
    async reopen() {
      await open.pop()?.[Symbol.asyncDispose]();
      const next = await start();
      open.push(next);
      return next;
    },
    async dispose() {
      await open.at(-1)?.purge();
      await open.pop()?.[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
