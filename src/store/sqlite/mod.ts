import { chmodSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { hasCode, messageOf } from "#base";
import { Entry } from "../entry.ts";
import { StoreError } from "../errors.ts";
import type { Store } from "../port.ts";
import { createVersionedStore, type Journal, type VersionedOptions } from "../versioned.ts";
import { createWriter, type RowWrite } from "./writer.ts";

/** Revisions set aside at a time for writes that are not durable. */
const RESERVE = 10_000;

/**
 * A store in one SQLite file (WAL mode, `<path>`, `<path>-wal`, `<path>-shm`). Writes go through a thread of their own, a
 * batch a transaction, and are acknowledged once the disk has them. An idle store writes nothing.
 * @throws {StoreError} `corrupt` when the file is no database or is damaged
 */
export async function createSqliteStore(path: string, options: SqliteOptions = {}): Promise<Store> {
  return createVersionedStore(openJournal(path, options), options);
}

export interface SqliteOptions extends VersionedOptions {
  /** Largest size of the database in pages of 4 KiB; a write beyond fails with `full`. Default: what the disk holds. */
  readonly maxPages?: number;
}

function openJournal(path: string, options: SqliteOptions): Journal {
  const { rows, reserved } = readAll(path);
  const writer = createWriter(path, options.maxPages);
  let ceiling = reserved;
  return {
    load: () => rows,
    revision: reserved,
    get reserved() {
      return ceiling;
    },
    async append(batch, revision) {
      const next = revision > ceiling ? revision + RESERVE : ceiling;
      const writes = batch.map((write) => (write.type === "delete" ? { key: write.key } : rowOf(write.entry)));
      await writer.write(writes, next === ceiling ? undefined : next);
      ceiling = next;
    },
    async close(revision) {
      // an orderly end gives back what was set aside and not used
      if (revision !== ceiling) await writer.write([], revision);
      await writer.close();
    },
  };
}

function readAll(path: string): { rows: Entry[]; reserved: number } {
  try {
    const db = new DatabaseSync(path);
    try {
      chmodSync(path, 0o600);
      db.exec("PRAGMA journal_mode = WAL");
      db.exec(
        "CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, created INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID",
      );
      db.exec("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID");
      const rows: Entry[] = [];
      let last = 0;
      for (const row of db.prepare("SELECT key, revision, created, value FROM entries").iterate()) {
        const { key, revision, created, value } = row as unknown as {
          key: string;
          revision: number;
          created: number;
          value: Uint8Array;
        };
        rows.push(
          new Entry(key, revision, created, { json: Buffer.from(value.buffer, value.byteOffset, value.byteLength) }),
        );
        last = Math.max(last, revision);
      }
      const kept = db.prepare("SELECT value FROM meta WHERE name = 'reserved'").get() as { value: number } | undefined;
      return { rows, reserved: Math.max(last, kept?.value ?? 0) };
    } finally {
      db.close();
    }
  } catch (cause) {
    if (hasCode(cause, "ENOENT", "EACCES", "EROFS")) throw cause;
    throw new StoreError("corrupt", `the database ${path} can't be read: ${messageOf(cause)}`, {
      cause,
      hint: `Restore ${path} from a backup, or move it (and ${path}-wal) away to start with an empty cluster.`,
    });
  }
}

/** A small Buffer is a window on a shared pool, which a message would copy whole: the row gets bytes of its own. */
function rowOf(entry: Entry): RowWrite {
  return { key: entry.key, revision: entry.revision, created: entry.created, value: new Uint8Array(entry.json()) };
}
