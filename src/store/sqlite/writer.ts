import { Worker } from "node:worker_threads";
import { messageOf } from "#base";
import { StoreError } from "../errors.ts";

export interface WriterData {
  readonly path: string;
  readonly maxPages: number | undefined;
}

/** A row to put, or with a key alone, to delete. */
export interface RowWrite {
  readonly key: string;
  readonly revision?: number;
  readonly created?: number;
  readonly value?: Uint8Array;
}

/** What the thread is told; `id` comes back with the outcome. */
export interface WriterRequest {
  readonly id: number;
  readonly writes: readonly RowWrite[];
  readonly reserved?: number;
}
export interface WriterReply {
  readonly id: number;
  readonly error?: { readonly message: string; readonly full: boolean };
}

export interface Writer {
  /** One transaction. @throws {StoreError} `full`; `closed` when the thread is gone */
  write(writes: readonly RowWrite[], reserved: number | undefined): Promise<void>;
  close(): Promise<void>;
}

/** The thread that owns the database's connection for writing, so that waiting for the disk stops nobody else. */
export function createWriter(path: string, maxPages?: number): Writer {
  const worker = new Worker(workerFile(), {
    workerData: { path, maxPages } satisfies WriterData,
    // options of the process that make no sense for a thread of its own (--input-type) are not passed on
    execArgv: [],
    resourceLimits: { maxYoungGenerationSizeMb: 4 },
  });
  worker.unref();
  const waiting = new Map<number, { resolve(): void; reject(error: unknown): void }>();
  let id = 0;
  let dead: unknown;
  const die = (error: unknown) => {
    dead ??= error;
    for (const { reject } of waiting.values()) reject(dead);
    waiting.clear();
  };
  worker.on("message", ({ id, error }: WriterReply) => {
    const one = waiting.get(id);
    waiting.delete(id);
    if (waiting.size === 0) worker.unref();
    if (!error) one?.resolve();
    else one?.reject(new StoreError(error.full ? "full" : "closed", `writing to ${path} failed: ${error.message}`));
  });
  worker.on("error", (cause) =>
    die(new StoreError("closed", `the writer of ${path} ended: ${messageOf(cause)}`, { cause })),
  );
  worker.on("exit", () => die(new StoreError("closed", `the writer of ${path} has ended`)));
  return {
    write(writes, reserved) {
      return new Promise((resolve, reject) => {
        if (dead) return reject(dead);
        const request: WriterRequest = { id: ++id, writes, ...(reserved === undefined ? {} : { reserved }) };
        waiting.set(request.id, { resolve, reject });
        worker.ref();
        worker.postMessage(request);
      });
    },
    async close() {
      await worker.terminate();
    },
  };
}

/** Beside this file in development, beside the bundle in a release. */
function workerFile(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "./worker.ts" : "./store-writer.js", import.meta.url);
}
