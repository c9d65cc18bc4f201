import type { Readable, Writable } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import { type Clock, messageOf } from "#base";
import { type ExecSession, type Session, type Status, StatusError } from "#kinds";

/** The client's side of exec and attach, whatever carries it. Streams that the client did not ask for are null. */
export interface CommandChannels {
  /** What the client types; ends when the client closes its stdin. */
  readonly stdin: Readable | null;
  readonly stdout: Writable | null;
  readonly stderr: Writable | null;
  onResize(listener: (size: { width: number; height: number }) => void): void;
  /** Tells how it ended, then closes the connection. */
  finish(status: StreamStatus): Promise<void>;
  /** Resolves when the connection is gone. */
  readonly closed: Promise<void>;
}

/** The Status on the error channel. */
export type StreamStatus = Omit<Status, "apiVersion" | "kind">;

/** How long output may still come after the command has ended (a child that keeps the pipe open), milliseconds. */
const DRAIN = 5_000;

/** Runs an exec or attach session over the channels until it ends or the client goes away. Never rejects. */
export async function runCommand(
  session: Extract<Session, { kind: "exec" }>,
  channels: CommandChannels,
  deps: { clock: Clock },
): Promise<void> {
  let command: ExecSession;
  try {
    command = await session.start();
  } catch (error) {
    return channels.finish(failureStatus(error));
  }
  channels.onResize((size) => command.resize(size));
  void channels.closed.then(() => command.close());
  feed(channels.stdin, command.stdin);
  const output = Promise.all([copy(command.stdout, channels.stdout), copy(command.stderr, channels.stderr)]);
  let status: StreamStatus;
  try {
    status = exitStatus((await command.done).exitCode);
  } catch (error) {
    status = failureStatus(error);
  }
  const late = new AbortController();
  await Promise.race([output, deps.clock.sleep(DRAIN, { signal: late.signal }).catch(() => undefined)]);
  late.abort();
  await channels.finish(status);
}

function feed(from: Readable | null, to: Writable | null): void {
  if (!from) return;
  if (!to) {
    from.resume();
    return;
  }
  // A command that does not read its stdin, or has ended, is no fault of the session.
  to.on("error", () => from.unpipe(to).resume());
  from.on("error", () => to.end());
  from.pipe(to);
}

/** Copies until the source ends; the sink stays open for the status that follows. */
async function copy(from: Readable | null, to: Writable | null): Promise<void> {
  if (!from) return;
  if (!to) {
    from.resume();
    await finished(from).catch(() => undefined);
    return;
  }
  // The client is gone: `closed` ends the command.
  await pipeline(from, to, { end: false }).catch(() => undefined);
}

export function exitStatus(exitCode: number): StreamStatus {
  if (exitCode === 0) return { metadata: {}, status: "Success" };
  return {
    metadata: {},
    status: "Failure",
    message: `command terminated with non-zero exit code: command terminated with exit code ${exitCode}`,
    reason: "NonZeroExitCode",
    details: { causes: [{ reason: "ExitCode", message: String(exitCode) }] },
  };
}

export function failureStatus(error: unknown): StreamStatus {
  if (error instanceof StatusError) {
    const { apiVersion: _, kind: __, ...status } = error.status;
    return status;
  }
  return {
    metadata: {},
    status: "Failure",
    message: `Internal error occurred: error executing command in container: ${messageOf(error)}`,
    reason: "InternalError",
    code: 500,
  };
}

/** The error channel before protocol v4: plain text, nothing on success. */
export function statusText(status: StreamStatus): string {
  return status.status === "Success" ? "" : (status.message ?? "unknown error");
}

/** A TerminalSize message, `{"Width":80,"Height":24}`; undefined when it is not one. */
export function terminalSize(json: string): { width: number; height: number } | undefined {
  try {
    const { Width: width, Height: height } = JSON.parse(json) as { Width?: unknown; Height?: unknown };
    return typeof width === "number" && typeof height === "number" ? { width, height } : undefined;
  } catch {
    return undefined;
  }
}
