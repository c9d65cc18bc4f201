import { createSocket } from "node:dgram";
import { connect } from "node:net";
import type { Clock } from "#base";

/** How long a resolver may take before the next one is asked, milliseconds. */
const PATIENCE = 2000;

/** Asks the host's resolvers, one after the other. @throws Error when none answers */
export async function askUpstream(
  message: Buffer,
  servers: readonly string[],
  protocol: "udp" | "tcp",
  clock: Clock,
): Promise<Buffer> {
  let last: unknown = new Error("the host has no resolver");
  for (const server of servers) {
    try {
      return await (protocol === "udp" ? askByUdp : askByTcp)(message, server, clock);
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

function askByUdp(message: Buffer, server: string, clock: Clock): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(server.includes(":") ? "udp6" : "udp4");
    const end = (finish: () => void) => {
      timer.clear();
      socket.close();
      finish();
    };
    const timer = clock.setTimer(() => end(() => reject(new Error(`${server} does not answer`))), PATIENCE);
    socket.on("error", (error) => end(() => reject(error)));
    // a connected socket takes answers from nobody else; the id ties them to the question
    socket.connect(53, server, () => socket.send(message));
    socket.on("message", (answer) => {
      if (answer.readUInt16BE(0) === message.readUInt16BE(0)) end(() => resolve(answer));
    });
  });
}

function askByTcp(message: Buffer, server: string, clock: Clock): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect(53, server);
    const timer = clock.setTimer(() => socket.destroy(new Error(`${server} does not answer`)), PATIENCE);
    let data = Buffer.alloc(0);
    socket.on("connect", () => socket.write(framed(message)));
    socket.on("data", (chunk: Buffer) => {
      data = Buffer.concat([data, chunk]);
      if (data.length < 2 || data.length < 2 + data.readUInt16BE(0)) return;
      timer.clear();
      socket.destroy();
      resolve(data.subarray(2, 2 + data.readUInt16BE(0)));
    });
    socket.on("error", reject);
    socket.on("close", () => {
      timer.clear();
      reject(new Error(`${server} closed the connection`));
    });
  });
}

/** A message as it goes over TCP: its length before it. */
export function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
