import { open } from "node:fs/promises";
import type { Engine } from "#engine";
import { ANNOTATION } from "../container-config/labels.ts";
import { splitLogLines } from "./log-tail.ts";
import type { ObservedContainer } from "./observe.ts";

const MAX_MESSAGE = 4096;
const MAX_FROM_LOG = 2048;
const MAX_LINES = 80;

/**
 * What an ended container left to say: its termination message file, or the end of its log where the policy is
 * `FallbackToLogsOnError` and it failed.
 *
 * Source: https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/
 */
export async function terminationMessage(engine: Engine, run: ObservedContainer): Promise<string> {
  const config = engine.container(run.id)?.config;
  if (!config) return "";
  const path = config.annotations[ANNOTATION.terminationMessagePath];
  const mount = path ? config.mounts.find((candidate) => candidate.containerPath === path) : undefined;
  const text = mount ? await readEnd(mount.hostPath, MAX_MESSAGE) : "";
  if (text) return text;
  const policy = config.annotations[ANNOTATION.terminationMessagePolicy];
  if (policy !== "FallbackToLogsOnError" || run.exitCode === 0) return "";
  // Each line of the log carries its time and stream: read enough for the lines that count.
  const raw = await readEnd(config.logPath, MAX_FROM_LOG + MAX_LINES * 64 + 4096);
  const tail = splitLogLines(raw).slice(-MAX_LINES).join("");
  return Buffer.from(tail).subarray(-MAX_FROM_LOG).toString("utf8");
}

/** The last `most` bytes of a file; empty when there is none. */
async function readEnd(path: string, most: number): Promise<string> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw error;
  });
  if (!file) return "";
  try {
    const { size } = await file.stat();
    const length = Math.min(size, most);
    const buffer = Buffer.alloc(length);
    await file.read(buffer, 0, length, size - length);
    return buffer.toString("utf8");
  } finally {
    await file.close();
  }
}
