import type { Duplex, Readable, Writable } from "node:stream";

/** A running exec or attach. Streams that were not asked for are null. With a tty all output is on stdout. */
export interface ExecSession {
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** Terminal size in characters; no effect without a tty. */
  resize(size: { width: number; height: number }): void;
  /** How it ended, after all output was handed over. Rejects when it could not be started or was lost. */
  readonly done: Promise<{ exitCode: number }>;
  /** Ends it: kills an exec'd process, leaves an attached one alone. */
  close(): void;
}

export interface ExecOptions {
  readonly command: readonly string[];
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}
export type AttachOptions = Omit<ExecOptions, "command">;

/** What the API server ties to an upgraded connection. */
export type Session =
  | { readonly kind: "exec"; readonly options: AttachOptions; start(): Promise<ExecSession> }
  | { readonly kind: "portforward"; readonly ports: readonly number[]; connect(port: number): Promise<Duplex> };

/** `PodLogOptions` of v1. */
export interface LogOptions {
  readonly container: string;
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  readonly sinceSeconds?: number;
  /** RFC 3339. */
  readonly sinceTime?: string;
  readonly tailLines?: number;
  readonly limitBytes?: number;
  /** `All` (default), `Stdout`, `Stderr`. */
  readonly stream?: string;
}

export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * How the API server reaches the agent of a node; the kubelet implements it. Errors are StatusErrors in the words of
 * the kubelet ('container "x" in pod "y" is not available').
 */
export interface NodeConnector {
  logs(pod: PodRef, options: LogOptions, signal: AbortSignal): Promise<Readable>;
  exec(pod: PodRef, container: string, options: ExecOptions): Promise<ExecSession>;
  attach(pod: PodRef, container: string, options: AttachOptions): Promise<ExecSession>;
  /** A connection to a port inside the pod's network namespace. */
  portForward(pod: PodRef, port: number): Promise<Duplex>;
  /** `GET nodes/<name>/proxy/<path>`: healthz, metrics, stats/summary, pods, configz, logs. */
  proxy(path: string, query: URLSearchParams): Promise<{ code: number; contentType: string; body: Buffer }>;
}
