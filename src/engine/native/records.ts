import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Logger, messageOf } from "#base";
import type { ContainerStatus, SandboxStatus } from "../port.ts";
import type { Attachment } from "./net/pod-network.ts";
import { makePrivateDirectory, writeAtomically } from "./sys/files.ts";
import type { ProcessId } from "./sys/process.ts";

/** All that the engine remembers of a sandbox. */
export interface SandboxRecord extends SandboxStatus {
  /** The pod's control group, parent of its containers'. */
  readonly cgroup: string;
  readonly runtime: string;
  /** Absent: the host's network, or not connected (any more). */
  readonly attachment?: Attachment;
  /** A half-made one is removed by the next start. */
  readonly complete: boolean;
}

/** All that the engine remembers of a container. */
export interface ContainerRecord extends ContainerStatus {
  readonly cgroup: string;
  readonly runtime: string;
  readonly stopSignal: string;
  readonly isPause: boolean;
  readonly complete: boolean;
  /** The boot in which `process` and `monitor` ran. */
  readonly bootId?: string;
  readonly process?: ProcessId;
  readonly monitor?: ProcessId;
}

/** A directory of JSON files, one a record, in memory and on disk; a record in the map is never changed, only replaced. */
export interface Records<T extends { readonly id: string }> {
  readonly all: ReadonlyMap<string, T>;
  save(record: T): T;
  /** Known to this process only: for what is being made, and for what another record tells as well. */
  keep(record: T): T;
  /** Changes a record that is still there. */
  change(id: string, changes: Partial<T>): T | undefined;
  remove(id: string): void;
}

export function openRecords<T extends { readonly id: string }>(directory: string, logger: Logger): Records<T> {
  makePrivateDirectory(directory);
  const all = new Map<string, T>();
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    if (!name.endsWith(".json")) {
      rmSync(path, { force: true, recursive: true }); // a temporary file of a write that was cut off
      continue;
    }
    try {
      const record = JSON.parse(readFileSync(path, "utf8")) as T;
      all.set(record.id, record);
    } catch (error) {
      logger.warn("unreadable state file is dropped", { path, error: messageOf(error) });
      rmSync(path, { force: true });
    }
  }
  const fileOf = (id: string) => join(directory, `${id}.json`);
  const keep = (record: T) => {
    all.set(record.id, record);
    return record;
  };
  const save = (record: T) => {
    writeAtomically(fileOf(record.id), JSON.stringify(record));
    return keep(record);
  };
  return {
    all,
    save,
    keep,
    change(id, changes) {
      const record = all.get(id);
      return record && save({ ...record, ...changes });
    },
    remove(id) {
      rmSync(fileOf(id), { force: true });
      all.delete(id);
    },
  };
}
