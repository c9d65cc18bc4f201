import { createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";

export interface PortForward extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** `http://127.0.0.1:34567` */
  readonly url: string;
}

/** Listens on a local port and ties every connection to one that `open` makes. */
export async function listenForward(
  open: () => Promise<Duplex>,
  options: { host: string; port: number; onError?(error: unknown): void },
): Promise<PortForward> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    open().then(
      (remote) => tie(socket, remote),
      (error: unknown) => {
        options.onError?.(error);
        socket.destroy();
      },
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, resolve);
  });
  server.unref();
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : options.port;
  const { host } = options;
  return {
    host,
    port,
    url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Data both ways; the end of either side ends the other once it has taken what was under way. */
export function tie(local: Duplex, remote: Duplex): void {
  remote.on("error", () => local.destroy());
  remote.once("close", () => local.destroy());
  local.once("close", () => remote.destroy());
  local.pipe(remote);
  remote.pipe(local);
}
