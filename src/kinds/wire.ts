import type { Readable } from "node:stream";
import type { Session } from "./session.ts";

/** Who asks (authentication.k8s.io UserInfo). */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/**
 * One call of the API, shared by the API server and its in-process clients: what HTTP carries, without sockets and
 * without serializing. Objects in it are read-only for the receiver.
 */
export interface ApiRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS";
  /** Decoded by the server; starts with `/`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body?: { readonly object: unknown } | { readonly bytes: Buffer };
  /** Set by who has authenticated the caller already: the listener, or the composition root for in-process clients. */
  readonly user?: UserInfo;
  readonly signal?: AbortSignal;
  /** Address of the peer, for logs and audit. */
  readonly remoteAddress?: string;
}

export interface ApiResponse {
  readonly code: number;
  /** Lower-case names; `warning` may hold several values. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: ApiBody;
}

export type ApiBody =
  /** One object. `json` gives the same object serialized, where that is at hand. */
  | { readonly kind: "object"; readonly object: unknown; readonly json?: () => Buffer }
  | { readonly kind: "bytes"; readonly bytes: Buffer; readonly contentType: string }
  /** Pods' logs and the like. */
  | { readonly kind: "stream"; readonly stream: Readable; readonly contentType: string }
  | { readonly kind: "watch"; readonly watch: WatchStream }
  /** exec, attach, port-forward: the listener upgrades the connection and ties it to this session. */
  | { readonly kind: "session"; readonly session: Session };

export interface WatchEvent<T = unknown> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  /** The object; a `Status` for ERROR. */
  readonly object: T;
}

/** A watch that has not started. Events come in order, from `start` on, also before `start` returns. */
export interface WatchStream {
  start(sink: WatchSink): { stop(): void };
}

export interface WatchSink {
  /** `json` gives the frame `{"type":…,"object":…}\n`, serialized once for all watchers that need the same bytes. */
  event(event: WatchEvent, json: () => Buffer): void;
  /** The server ends the watch (timeout, shutdown, too slow a consumer); called once, after the last event. */
  end(): void;
}
