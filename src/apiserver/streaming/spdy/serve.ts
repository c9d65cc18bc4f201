import type { Duplex } from "node:stream";
import { finished } from "node:stream/promises";
import { badRequest, forbidden, type Session } from "#kinds";
import type { UpgradeRequest } from "../../listen/mod.ts";
import { type CommandChannels, runCommand, statusText, terminalSize } from "../remote-command.ts";
import type { StreamingDeps } from "../streaming.ts";
import { type SpdyStream, serveConnection } from "./connection.ts";
import { serveSpdyPortForward } from "./port-forward.ts";

const COMMAND_PROTOCOLS = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
const FORWARD_PROTOCOLS = ["portforward.k8s.io"];
/** How long the client may take to open its streams, milliseconds (kubelet's streamCreationTimeout). */
const STREAM_CREATION = 30_000;

/** Serves exec, attach or port-forward over SPDY/3.1. @throws StatusError 403 when no protocol version is shared */
export async function serveSpdy({ req, socket, head, session }: UpgradeRequest, deps: StreamingDeps): Promise<void> {
  if (session.kind === "read") throw badRequest("unable to upgrade: watches and logs are read over WebSockets");
  const supported = session.kind === "exec" ? COMMAND_PROTOCOLS : FORWARD_PROTOCOLS;
  const offered = String(req.headers["x-stream-protocol-version"] ?? "")
    .split(",")
    .map((version) => version.trim())
    .filter(Boolean);
  // A client that names no version speaks the first one.
  const protocol = offered.length === 0 ? supported.at(-1)! : offered.find((version) => supported.includes(version));
  if (!protocol) {
    throw forbidden(
      { group: "", resource: "" },
      "",
      `unable to upgrade: unable to negotiate protocol: client supports [${offered.join(" ")}], server accepts [${supported.join(" ")}]`,
    );
  }
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n${offered.length ? `X-Stream-Protocol-Version: ${protocol}\r\n` : ""}\r\n`,
  );
  if (head.length > 0) socket.unshift(head);
  if (session.kind === "portforward") return serveSpdyPortForward(session, socket, deps);
  return serveCommand(session, socket, protocol, deps);
}

async function serveCommand(
  session: Extract<Session, { kind: "exec" }>,
  socket: Duplex,
  protocol: string,
  deps: StreamingDeps,
): Promise<void> {
  const { stdin, stdout, stderr, tty } = session.options;
  const expected = new Set([
    "error",
    ...(stdin ? ["stdin"] : []),
    ...(stdout ? ["stdout"] : []),
    ...(stderr && !tty ? ["stderr"] : []),
  ]);
  // Version 3 brought the resize stream.
  if (tty && /^v[34]/.test(protocol)) expected.add("resize");
  const streams = new Map<string, SpdyStream>();
  let complete = () => {};
  const ready = new Promise<boolean>((resolve) => {
    complete = () => resolve(true);
    deps.clock.setTimer(() => resolve(false), STREAM_CREATION);
  });
  const connection = serveConnection(socket, (stream) => {
    const type = stream.headers.streamtype ?? "";
    if (!expected.has(type) || streams.has(type)) return stream.reset();
    streams.set(type, stream);
    if (streams.size === expected.size) complete();
  });
  void connection.closed.then(complete);
  if (!(await ready) || socket.destroyed) return connection.close();

  const channels: CommandChannels = {
    stdin: streams.get("stdin") ?? null,
    stdout: streams.get("stdout") ?? null,
    stderr: streams.get("stderr") ?? null,
    onResize(listener) {
      streams.get("resize")?.on("data", (data: Buffer) => {
        for (const line of data.toString().split("\n")) {
          const size = terminalSize(line);
          if (size) listener(size);
        }
      });
    },
    async finish(status) {
      const text = protocol === "v4.channel.k8s.io" ? JSON.stringify(status) : statusText(status);
      for (const [type, stream] of streams) {
        if (type === "error" && text) stream.write(text);
        stream.end();
      }
      // Nobody to tell when the client is gone.
      await Promise.all(
        [...streams.values()].map((stream) => finished(stream, { readable: false }).catch(() => undefined)),
      );
      connection.close();
    },
    closed: connection.closed,
  };
  await runCommand(session, channels, deps);
}
