import type { Readable } from "node:stream";
import type { WebSocket } from "ws";
import type { ReadSession } from "../listen/mod.ts";

/** A client that reads slower than this many bytes behind is let go. */
const MAX_BEHIND = 16 * 2 ** 20;

/**
 * Sends an answer over a WebSocket: a watch one event a text frame, a log in binary frames as it comes (text frames with the
 * protocol `base64.binary.k8s.io`). What the client sends is ignored; when it goes, the answer ends.
 */
export async function serveReader({ body }: ReadSession, ws: WebSocket): Promise<void> {
  ws.on("error", () => ws.terminate());
  const base64 = ws.protocol === "base64.binary.k8s.io";
  const send = (chunk: Buffer) => {
    if (base64) ws.send(chunk.toString("base64"));
    else ws.send(chunk, { binary: true });
  };
  switch (body.kind) {
    case "bytes":
      if (body.bytes.length > 0) send(body.bytes);
      ws.close(1000);
      return;
    case "stream":
      return sendStream(body.stream, ws, send);
    case "watch": {
      const watch = body.watch.start({
        event(_event, json) {
          if (ws.bufferedAmount > MAX_BEHIND) ws.terminate();
          else ws.send(json().toString("utf8").trimEnd());
        },
        end: () => ws.close(1000),
      });
      ws.once("close", () => watch.stop());
    }
  }
}

async function sendStream(stream: Readable, ws: WebSocket, send: (chunk: Buffer) => void): Promise<void> {
  ws.once("close", () => stream.destroy());
  try {
    for await (const chunk of stream) {
      send(chunk as Buffer);
      while (ws.bufferedAmount > MAX_BEHIND && ws.readyState === ws.OPEN)
        await new Promise<void>((resolve) => ws.send("", () => resolve()));
    }
    ws.close(1000);
  } catch {
    // the client went away, or the source broke off: either way the connection ends without a clean close
    ws.terminate();
  }
}
