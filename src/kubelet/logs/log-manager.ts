import { readdir, rmdir, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { type Clock, hasCode, type Logger, messageOf, type Timer } from "#base";
import type { Engine } from "#engine";
import { LABEL } from "../container-config/labels.ts";
import { parsePodLogDirectory } from "./layout.ts";
import { type RotationPolicy, removeLog, rotateLog } from "./rotation.ts";

export interface LogManagerOptions extends Partial<RotationPolicy> {
  /** Directory of all pods' logs. */
  readonly root: string;
  /** How often sizes are looked at, milliseconds. Default 10 s. */
  readonly intervalMs?: number;
}

/** Keeps the logs of a node within bounds: rotates those of running containers, removes those of containers that are gone. */
export interface LogManager extends AsyncDisposable {
  start(): void;
}

/** A log that belongs to no container is left this long, milliseconds: its container may be about to be made. */
const ORPHAN_AGE = 60_000;

export function createLogManager(
  deps: { engine: Engine; clock: Clock; logger: Logger },
  options: LogManagerOptions,
): LogManager {
  const { engine, clock, logger } = deps;
  const policy = { maxSizeBytes: options.maxSizeBytes ?? 10 << 20, maxFiles: options.maxFiles ?? 5 };
  let timer: Timer | undefined;
  let running: Promise<void> = Promise.resolve();
  let stopped = false;
  // What a former process left is looked for once; later only what was removed can leave something behind.
  let sweepNeeded = true;
  const subscription = engine.onEvent((event) => {
    if (event.type === "container-removed" || event.type === "sandbox-removed") sweepNeeded = true;
  });

  const rotateAll = async () => {
    for (const { id, state, config } of engine.containers()) {
      // Another node may run on the same engine.
      if (state !== "running" || stopped || !config.logPath.startsWith(options.root + sep)) continue;
      try {
        await rotateLog(config.logPath, policy, { now: () => clock.now(), reopen: () => engine.reopenLog(id) });
      } catch (error) {
        // Between the list and here it may have ended.
        if (engine.container(id)?.state === "running") {
          logger.warn("cannot rotate a log", { path: config.logPath, error: messageOf(error) });
        }
      }
    }
  };
  const sweep = async () => {
    if (!sweepNeeded) return;
    sweepNeeded = await removeOrphans(options.root, engine, clock.now());
  };
  const tick = () => {
    running = rotateAll()
      .then(sweep)
      .catch((error: unknown) => logger.warn("cannot tidy logs", { error: messageOf(error) }))
      .then(() => {
        if (!stopped) timer = clock.setTimer(tick, options.intervalMs ?? 10_000);
      });
  };
  return {
    start: tick,
    async [Symbol.asyncDispose]() {
      stopped = true;
      timer?.clear();
      subscription[Symbol.dispose]();
      await running;
    },
  };
}

/** Removes logs without a container, and empty directories of pods without a sandbox. True: some are still too young. */
async function removeOrphans(root: string, engine: Engine, now: number): Promise<boolean> {
  const used = new Set(engine.containers().map(({ config }) => config.logPath));
  const pods = new Set([
    ...engine.sandboxes().map(({ config }) => config.uid),
    ...engine.containers().map(({ config }) => config.labels[LABEL.podUid] ?? ""),
  ]);
  let young = false;
  for (const name of await entries(root)) {
    const pod = parsePodLogDirectory(name);
    if (!pod) continue;
    const directory = join(root, name);
    for (const container of await entries(directory)) {
      for (const file of await entries(join(directory, container))) {
        if (!/^\d+\.log$/.test(file)) continue;
        const path = join(directory, container, file);
        if (used.has(path)) continue;
        if (await isOlder(path, now - ORPHAN_AGE)) await removeLog(path);
        else young = true;
      }
      if (!pods.has(pod.uid)) await removeEmpty(join(directory, container));
    }
    if (!pods.has(pod.uid)) await removeEmpty(directory);
  }
  return young;
}

async function isOlder(path: string, time: number): Promise<boolean> {
  try {
    return (await stat(path)).mtimeMs < time;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}

async function entries(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}

async function removeEmpty(directory: string): Promise<void> {
  try {
    await rmdir(directory);
  } catch (error) {
    if (!hasCode(error, "ENOTEMPTY", "ENOENT", "EEXIST", "ENOTDIR")) throw error;
  }
}
