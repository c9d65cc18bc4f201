import { spawn } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import { ReadStream } from "node:tty";
import { PassThrough } from "node:stream";
import { hasCode } from "#base";
import { EngineError } from "../../errors.ts";
import type { EngineExecOptions, EngineSession } from "../../port.ts";
import type { Context } from "../context.ts";
import type { ContainerRecord } from "../records.ts";
import { readIfThere } from "../sys/files.ts";
import type { Libc } from "../sys/libc.ts";
import { EXEC_ENVIRONMENT, execProcess, killExec, removeExecFiles, startFailure } from "./exec.ts";

/** ioctl(2) requests; the same numbers on x86-64 and arm64. */
const TIOCSPTLCK = 0x40045431;
const TIOCGPTN = 0x80045430;
const TIOCSWINSZ = 0x5414;

/**
 * An exec with a terminal: the runtime wants to be the leader of a session whose terminal is a pty of ours, and copies between
 * that one and the pty that it makes inside the container.
 */
export async function execWithTerminal(
  context: Context,
  record: ContainerRecord,
  options: EngineExecOptions,
): Promise<EngineSession> {
  const { libc } = context;
  if (!libc) throw new EngineError("unsupported", "a terminal needs koffi", { hint: "npm install koffi" });
  const run = execProcess(context, record, options.command, { tty: true });
  const { master, slave } = openPty(libc);
  const child = spawn(context.host.programs.setsid, ["-c", "-w", run.program, ...run.args], {
    stdio: [slave, slave, slave],
    env: { ...EXEC_ENVIRONMENT, TERM: "xterm" },
  });
  closeSync(slave);
  // A terminal that is closed on the other side gives EIO: to us that is its end.
  const terminal = new ReadStream(master);
  const output = new PassThrough();
  let beginning = "";
  terminal.on("data", (chunk: Buffer) => {
    if (beginning.length < 4096) beginning += chunk.toString("utf8");
    if (!output.write(chunk)) {
      terminal.pause();
      output.once("drain", () => terminal.resume());
    }
  });
  terminal.on("error", () => output.end());
  terminal.on("end", () => output.end());
  let closed = false;
  const close = () => {
    closed = true;
    killExec(child.pid ?? 0, run.pidFile);
  };
  options.signal?.addEventListener("abort", close, { once: true });
  const done = new Promise<{ exitCode: number }>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => {
      options.signal?.removeEventListener("abort", close);
      const failure = closed ? undefined : startFailure(context, record, run, code, beginning);
      removeExecFiles(run);
      output.once("close", () => terminal.destroy());
      if (failure) reject(failure);
      else resolve({ exitCode: code ?? 137 });
    });
  });
  done.catch(() => {}); // a caller who only reads output must not be ended by it
  return {
    stdin: options.stdin ? terminal : null,
    stdout: output,
    stderr: null,
    resize: (size) => resize(context, libc, master, run.pidFile, size),
    done,
    close,
  };
}

function openPty(libc: Libc): { master: number; slave: number } {
  const master = openSync("/dev/ptmx", constants.O_RDWR | constants.O_NOCTTY);
  try {
    const value = Buffer.alloc(4);
    libc.ioctl(master, TIOCSPTLCK, value);
    libc.ioctl(master, TIOCGPTN, value);
    return { master, slave: openSync(`/dev/pts/${value.readUInt32LE(0)}`, constants.O_RDWR | constants.O_NOCTTY) };
  } catch (error) {
    closeSync(master);
    throw error;
  }
}

/** Some runtimes pass on only the first size, so it is set on the terminal inside the container as well, as soon as that is there. */
function resize(
  context: Context,
  libc: Libc,
  master: number,
  pidFile: string,
  size: { width: number; height: number },
  tries = 50,
): void {
  const value = Buffer.alloc(8);
  value.writeUInt16LE(size.height, 0);
  value.writeUInt16LE(size.width, 2);
  try {
    libc.ioctl(master, TIOCSWINSZ, value);
    const pid = readIfThere(pidFile);
    if (pid) {
      const fd = openSync(`/proc/${pid.trim()}/fd/0`, constants.O_RDWR | constants.O_NOCTTY);
      try {
        libc.ioctl(fd, TIOCSWINSZ, value);
      } finally {
        closeSync(fd);
      }
      return;
    }
  } catch (error) {
    if (!hasCode(error, "ENOENT", "ENOTTY", "EBADF", "EIO", "ENXIO", "ESRCH")) throw error;
  }
  if (tries > 0) context.clock.setTimer(() => resize(context, libc, master, pidFile, size, tries - 1), 20);
}
