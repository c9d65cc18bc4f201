// The writing thread of a SQLite store: a request is a transaction.
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { WriterData, WriterReply, WriterRequest } from "./writer.ts";

const SQLITE_FULL = 13;

const { path, maxPages } = workerData as WriterData;
const db = new DatabaseSync(path);
// FULL: a commit is on the disk when it returns, also in WAL mode
db.exec(
  "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 2000; PRAGMA busy_timeout = 5000",
);
if (maxPages !== undefined) db.exec(`PRAGMA max_page_count = ${maxPages}`);
const put = db.prepare("INSERT OR REPLACE INTO entries (key, revision, created, value) VALUES (?, ?, ?, ?)");
const remove = db.prepare("DELETE FROM entries WHERE key = ?");
const reserve = db.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('reserved', ?)");

function commit({ writes, reserved }: WriterRequest): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    for (const row of writes) {
      if (row.value) put.run(row.key, row.revision!, row.created!, row.value);
      else remove.run(row.key);
    }
    if (reserved !== undefined) reserve.run(reserved);
    db.exec("COMMIT");
  } catch (error) {
    // a full disk may have rolled the transaction back already
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

parentPort!.on("message", (request: WriterRequest) => {
  let reply: WriterReply = { id: request.id };
  try {
    commit(request);
  } catch (error) {
    const { message, errcode } = error as Error & { errcode?: number };
    reply = { ...reply, error: { message, full: errcode === SQLITE_FULL } };
  }
  parentPort!.postMessage(reply);
});
