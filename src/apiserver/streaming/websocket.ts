import type { Duplex, Readable, Writable } from "node:stream";
import { createWebSocketStream, type WebSocket, WebSocketServer } from "ws";
import { type Channels, createChannels, messageOf } from "#base";
import type { Session } from "#kinds";
import type { UpgradeRequest } from "../listen/mod.ts";
import { forwardError } from "./port-forward.ts";
import { type CommandChannels, runCommand, statusText, terminalSize } from "./remote-command.ts";
import { serveReader } from "./web-reader.ts";
import { serveSpdyPortForward } from "./spdy/port-forward.ts";
import type { StreamingDeps } from "./streaming.ts";

const COMMAND_PROTOCOLS = [
  "v5.channel.k8s.io",
  "v4.channel.k8s.io",
  "v4.base64.channel.k8s.io",
  "channel.k8s.io",
  "base64.channel.k8s.io",
];
const FORWARD_PROTOCOLS = ["SPDY/3.1+portforward.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"];

/** A frame of the client; commands' own input comes in far smaller ones. */
const MAX_MESSAGE = 32 * 1024 * 1024;

const PROTOCOLS = {
  exec: COMMAND_PROTOCOLS,
  portforward: FORWARD_PROTOCOLS,
  read: ["binary.k8s.io", "base64.binary.k8s.io"],
} as const;

/** Serves exec, attach, port-forward, a watch or a log over a WebSocket. Without a subprotocol the binary channels of v1 are spoken. */
export async function serveWebSocket(request: UpgradeRequest, deps: StreamingDeps): Promise<void> {
  const { req, socket, head, session } = request;
  const supported = PROTOCOLS[session.kind];
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE,
    perMessageDeflate: false,
    handleProtocols: (offered) =>
      [...offered].find((protocol) => (supported as readonly string[]).includes(protocol)) ?? false,
  });
  const offered = (req.headers["sec-websocket-protocol"] ?? "").split(",").map((protocol) => protocol.trim());
  if (offered[0] && !offered.some((protocol) => (supported as readonly string[]).includes(protocol)))
    return refuseProtocol(socket, offered, supported);
  const ws = await new Promise<WebSocket>((resolve) => server.handleUpgrade(req, socket, head, resolve));
  if (session.kind === "read") return serveReader(session, ws);
  if (session.kind === "exec") return serveCommand(session, ws, deps);
  if (ws.protocol === "SPDY/3.1+portforward.k8s.io")
    return serveSpdyPortForward(session, createWebSocketStream(ws), deps);
  return servePorts(session, createChannels(ws, { base64: ws.protocol.includes("base64") }));
}

function refuseProtocol(socket: Duplex, offered: readonly string[], supported: readonly string[]): void {
  const text = `requested protocol(s) are not supported: [${offered.join(" ")}]; supports [${supported.join(" ")}]`;
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const ERROR = 3;
const RESIZE = 4;

async function serveCommand(
  session: Extract<Session, { kind: "exec" }>,
  ws: WebSocket,
  deps: StreamingDeps,
): Promise<void> {
  const channels = createChannels(ws, { base64: ws.protocol.includes("base64") });
  const { stdin, stdout, stderr, tty } = session.options;
  const resize = channels.readable(RESIZE);
  const command: CommandChannels = {
    stdin: stdin ? channels.readable(STDIN) : null,
    stdout: stdout ? channels.writable(STDOUT) : null,
    stderr: stderr && !tty ? channels.writable(STDERR) : null,
    onResize: (listener) => void resize.on("data", (data: Buffer) => withSize(data, listener)),
    async finish(status) {
      const modern = ws.protocol.startsWith("v");
      const text = modern ? JSON.stringify(status) : statusText(status);
      // The client may be gone already; then there is nobody to tell.
      if (text) await channels.send(ERROR, Buffer.from(text)).catch(() => undefined);
      await channels.close();
    },
    closed: channels.closed,
  };
  // An empty message tells older clients that the connection stands.
  await channels.send(stdout ? STDOUT : stderr && !tty ? STDERR : ERROR, Buffer.alloc(0)).catch(() => undefined);
  await runCommand(session, command, deps);
}

function withSize(data: Buffer, listener: (size: { width: number; height: number }) => void): void {
  for (const line of data.toString().split("\n")) {
    const size = terminalSize(line);
    if (size) listener(size);
  }
}

/** Port-forward with channels: for port number i of the request, data on channel 2i and errors on 2i+1. */
async function servePorts(session: Extract<Session, { kind: "portforward" }>, channels: Channels): Promise<void> {
  await Promise.all(session.ports.map((port, i) => servePort(session, channels, port, 2 * i)));
  await channels.close();
}

async function servePort(
  session: Extract<Session, { kind: "portforward" }>,
  channels: Channels,
  port: number,
  data: number,
): Promise<void> {
  const announcement = Buffer.alloc(2);
  announcement.writeUInt16LE(port);
  const input: Readable = channels.readable(data);
  const output: Writable = channels.writable(data);
  try {
    await channels.send(data, announcement);
    await channels.send(data + 1, announcement);
    await join(await session.connect(port), input, output);
  } catch (error) {
    await channels.send(data + 1, Buffer.from(forwardError(port, messageOf(error)))).catch(() => undefined);
  }
}

/** Ties the pod's side to the client's until the pod's side is done. */
function join(connection: Duplex, input: Readable, output: Writable): Promise<void> {
  return new Promise((resolve, reject) => {
    connection.on("error", reject);
    connection.on("close", resolve);
    output.on("error", () => connection.destroy());
    output.on("finish", () => connection.destroy());
    input.pipe(connection);
    connection.pipe(output);
  });
}
