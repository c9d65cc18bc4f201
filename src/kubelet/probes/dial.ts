import { connect } from "node:net";
import type { Duplex } from "node:stream";

/** Opens a connection to a pod; the network's own by default. */
export type Dial = (host: string, port: number, signal: AbortSignal) => Promise<Duplex>;

export const dialTcp: Dial = (host, port, signal) =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true });
    const abort = () => {
      socket.destroy();
      reject(signal.reason);
    };
    signal.addEventListener("abort", abort, { once: true });
    socket.once("connect", () => {
      signal.removeEventListener("abort", abort);
      socket.removeListener("error", reject);
      resolve(socket);
    });
    socket.once("error", (error) => {
      signal.removeEventListener("abort", abort);
      reject(error);
    });
  });

/** `10.0.0.1:80`, `[fd00::1]:80` */
export const hostPort = (host: string, port: number): string => `${host.includes(":") ? `[${host}]` : host}:${port}`;

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused",
  EHOSTUNREACH: "connect: no route to host",
  ENETUNREACH: "connect: network is unreachable",
  ETIMEDOUT: "i/o timeout",
  ENOTFOUND: "no such host",
};

/** Why a connection could not be made, in the words that Kubernetes' events carry. */
export function dialFailure(host: string, port: number, error: unknown): string {
  const code = String((error as { code?: unknown }).code ?? "");
  const reason = isTimeout(error)
    ? "i/o timeout"
    : (REASONS[code] ?? (error instanceof Error ? error.message : String(error)));
  return `dial tcp ${hostPort(host, port)}: ${reason}`;
}

/** The probe's own time was up. */
export const isTimeout = (error: unknown): boolean => error instanceof ProbeTimeout;

export class ProbeTimeout extends Error {
  override name = "ProbeTimeout";
}
