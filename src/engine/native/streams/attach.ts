import { existsSync } from "node:fs";
import { Socket, type SocketConstructorOpts } from "node:net";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { EngineError } from "../../errors.ts";
import type { EngineSession } from "../../port.ts";
import type { Context } from "../context.ts";
import { whenExited } from "../exits.ts";
import { socketName } from "../monitor.ts";
import type { ContainerRecord } from "../records.ts";
import type { Libc } from "../sys/libc.ts";
import { control } from "./log.ts";

const AF_UNIX = 1;
const SOCK_SEQPACKET = 5 | 0o4000 | 0o2000000;
const STDERR = 3;

/**
 * Joins the running container's input and output. Conmon talks in packets: one byte for the stream, then data; input goes raw.
 * A client that does not read would stall the container's own output, so it is always read, and a viewer who is too slow loses the
 * connection, not the container.
 */
export async function attach(
  context: Context,
  record: ContainerRecord,
  options: { stdin: boolean; tty: boolean },
): Promise<EngineSession> {
  const { libc } = context;
  if (!libc) throw new EngineError("unsupported", "attach needs koffi", { hint: "npm install koffi" });
  const path = join(context.paths.sockets, socketName(record.id), "attach");
  if (!existsSync(path)) throw new EngineError("not-running", `container ${record.id} has no monitor any more`);
  const socket = openPackets(libc, path);
  const stdout = new PassThrough({ highWaterMark: MAX_BACKLOG });
  const stderr = new PassThrough({ highWaterMark: MAX_BACKLOG });
  const detached = Promise.withResolvers<{ exitCode: number }>();
  const close = () => {
    stdout.end();
    stderr.end();
    socket.destroy();
  };
  socket.on("error", close);
  socket.on("close", close);
  socket.on("end", close);
  socket.on("data", (packet: Buffer) => {
    const stream = packet[0] === STDERR ? stderr : stdout;
    if (!stream.write(packet.subarray(1)) && stream.writableLength > MAX_BACKLOG) close();
  });
  const exited = whenExited(context, record.id);
  const done = exited.then(() => ({ exitCode: context.containers.all.get(record.id)?.exitCode ?? 0 }));
  return {
    stdin: options.stdin && record.config.stdin ? inputOver(socket) : null,
    stdout,
    stderr: record.config.tty ? null : stderr,
    resize: ({ width, height }) => control(context, record, `1 ${height} ${width}\n`),
    done: Promise.race([done, detached.promise]),
    close() {
      close();
      detached.resolve({ exitCode: 0 });
    },
  };
}

/** What a viewer may lag behind, bytes. */
const MAX_BACKLOG = 4 << 20;

/** Largest packet that conmon takes whole, bytes. */
const MAX_PACKET = 8192;

/** Connects to conmon's packet socket; each `data` event of the answer is one packet. */
function openPackets(libc: Libc, path: string): Socket {
  const address = Buffer.alloc(110);
  address.writeUInt16LE(AF_UNIX, 0);
  if (address.write(path, 2) !== Buffer.byteLength(path) || Buffer.byteLength(path) > 107)
    throw new EngineError("unsupported", `the path of the attach socket is too long: ${path}`, {
      hint: "choose a shorter run directory",
    });
  const fd = libc.socket(AF_UNIX, SOCK_SEQPACKET, 0);
  try {
    libc.connect(fd, address);
  } catch (error) {
    libc.close(fd);
    throw error;
  }
  // node:net takes stream sockets only; its pipe handle reads one packet a time from this one just as well.
  const { Pipe, constants } = internalBinding("pipe_wrap");
  const handle = new Pipe(constants.SOCKET);
  handle.open(fd);
  return new Socket({
    handle,
    readable: true,
    writable: true,
    allowHalfOpen: true,
  } as unknown as SocketConstructorOpts);
}

interface PipeBinding {
  readonly Pipe: new (type: number) => { open(fd: number): void };
  readonly constants: { readonly SOCKET: number };
}

function internalBinding(name: string): PipeBinding {
  return (process as unknown as { binding(name: string): PipeBinding }).binding(name);
}

function inputOver(socket: Socket): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, callback) {
      for (let at = 0; at < chunk.length; at += MAX_PACKET) socket.write(chunk.subarray(at, at + MAX_PACKET));
      if (socket.writableNeedDrain) socket.once("drain", () => callback());
      else callback();
    },
    final(callback) {
      socket.end(() => callback());
    },
  });
}
