import { closeSync, constants, existsSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "#base";
import { EngineError } from "../../errors.ts";
import type { Context } from "../context.ts";
import type { ContainerRecord } from "../records.ts";

/** How long conmon may take to open the new file, milliseconds. */
const REOPEN_MS = 2000;

/** Tells conmon to open the log file again; what it reads meanwhile waits in the pipe, so no line is lost. */
export async function reopenLog(context: Context, record: ContainerRecord): Promise<void> {
  control(context, record, "2 0 0\n");
  const end = context.clock.monotonic() + REOPEN_MS;
  while (!existsSync(record.config.logPath)) {
    if (context.clock.monotonic() > end)
      throw new EngineError("not-running", `the log of container ${record.id} was not reopened`);
    await context.clock.sleep(2);
  }
}

/** Writes a command to conmon's control pipe. */
export function control(context: Context, record: ContainerRecord, command: string): void {
  try {
    const fd = openSync(join(context.paths.bundle(record.id), "ctl"), constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      writeSync(fd, command);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (hasCode(error, "ENXIO", "ENOENT"))
      throw new EngineError("not-running", `container ${record.id} has no monitor any more`, { cause: error });
    throw error;
  }
}
