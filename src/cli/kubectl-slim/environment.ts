import type { Readable, Writable } from "node:stream";
import type path from "node:path";

/** All that a command uses of the machine, so that every platform can be tested on any. */
export interface Environment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  /** `node:path`'s rules of that platform. */
  readonly path: typeof path.posix;
  readonly home: string;
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(raw: boolean): unknown };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number };
  readonly stderr: Writable;
  readonly files: FileAccess;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls back when the user wants to end (Ctrl-C). */
  onInterrupt(listener: () => void): Disposable;
  /** Calls back when the terminal has another size; never where the platform does not tell. */
  onResize(listener: () => void): Disposable;
  /** Runs an editor on a file, with the terminal. Resolves to its exit code. */
  runEditor(command: readonly string[], file: string): Promise<number>;
}

export interface FileAccess {
  read(path: string): string;
  readBytes(path: string): Buffer;
  write(path: string, content: string | Uint8Array, mode?: number): void;
  exists(path: string): boolean;
  isDirectory(path: string): boolean;
  list(path: string): readonly string[];
  makeDirectory(path: string): void;
  remove(path: string): void;
  /** A directory of its own below the system's temporary one. */
  temporary(prefix: string): string;
}

/** Text files of Windows end their lines with two characters; manifests and prompts are read without the first. */
export const withoutCarriageReturns = (text: string): string => text.replace(/\r\n/g, "\n");
