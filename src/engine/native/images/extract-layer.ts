import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { EngineError } from "../../errors.ts";
import { decompress } from "./decompress.ts";
import { createTarHeaders, type TarEntry } from "./tar-headers.ts";

export interface ExtractOptions {
  /** Empty directory that becomes the layer's root. */
  readonly into: string;
  /** Digest of the plain tar; checked when given. */
  readonly diffId?: string | undefined;
  /** Digest of the bytes as they come (compressed); checked when given. */
  readonly digest?: string | undefined;
  /** Bytes that the layer may take. */
  readonly budget: number;
  readonly signal?: AbortSignal | undefined;
}

export interface ExtractedLayer {
  readonly diffId: string;
  /** Bytes of all files. */
  readonly size: number;
  /** Paths (latin1) of `.wh.X` and `.wh..wh..opq` entries, still to be made into overlayfs marks. */
  readonly whiteouts: readonly string[];
  /** Directories (latin1) that entries need but the tar does not describe: they take after the layer below. */
  readonly implied: readonly string[];
}

/**
 * Unpacks a layer: a tar stream, plain or compressed, goes to a `tar` process while its headers and digests are read on
 * the way. GNU tar keeps owners, modes, hard links, extended attributes, sparse files and devices, and never writes outside
 * its directory. Memory: a few chunks and one name per directory.
 *
 * @throws EngineError `invalid-archive` (hostile, corrupt, wrong digest), `disk-full`; the directory is then garbage
 */
export async function extractLayer(source: AsyncIterable<Buffer>, options: ExtractOptions): Promise<ExtractedLayer> {
  const survey = createSurvey(options.budget);
  const headers = createTarHeaders(survey.entry);
  const compressed = options.digest === undefined ? undefined : createHash("sha256");
  const plain = createHash("sha256");
  const tar = startTar(options.into);
  let empty = true;
  try {
    for await (const chunk of decompress(tapped(source, compressed))) {
      options.signal?.throwIfAborted();
      plain.update(chunk);
      if (headers.ended) continue; // padding after the end mark: tar no longer reads
      empty = false;
      headers.push(chunk);
      await tar.write(chunk);
    }
    headers.end();
    // An empty stream is what some builders write for a layer without changes; tar takes only a real end mark.
    if (empty) await tar.write(Buffer.alloc(1024));
    await tar.finish();
  } catch (error) {
    await tar.kill();
    throw error;
  }
  verify(options.digest, compressed?.digest("hex"), "digest");
  const diffId = `sha256:${plain.digest("hex")}`;
  verify(options.diffId, diffId.slice(7), "diff id");
  return { diffId, size: survey.size(), whiteouts: survey.whiteouts, implied: survey.implied() };
}

/** Passes a stream on while a hash sees all of it. */
async function* tapped(
  source: AsyncIterable<Buffer>,
  hash?: { update(data: Buffer): unknown },
): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    hash?.update(chunk);
    yield chunk;
  }
}

function verify(expected: string | undefined, actualHex: string | undefined, what: string): void {
  if (expected === undefined || expected === `sha256:${actualHex}`) return;
  throw new EngineError("invalid-archive", `layer ${expected} is corrupt: its ${what} is sha256:${actualHex}`);
}

const MAX_ENTRIES = 4_000_000;

/** Looks at each header: refuses names that leave the root, notes whiteouts and directories without an entry, adds up. */
function createSurvey(budget: number) {
  const directories = new Map<string, boolean>();
  const whiteouts: string[] = [];
  let entries = 0;
  let size = 0;
  const imply = (path: string) => {
    for (let slash = path.lastIndexOf("/"); slash > 0; slash = path.lastIndexOf("/", slash - 1)) {
      const parent = path.slice(0, slash);
      if (directories.has(parent)) return;
      directories.set(parent, false);
    }
  };
  return {
    entry(entry: TarEntry) {
      entries += 1;
      if (entries > MAX_ENTRIES) throw new EngineError("invalid-archive", `a layer has over ${MAX_ENTRIES} entries`);
      const path = cleanName(entry.name);
      size += entry.size;
      if (size > budget) {
        throw new EngineError(
          "disk-full",
          `no space left on device: a layer needs over ${size} bytes, ${budget} are free`,
        );
      }
      if (entry.type === "1") cleanName(entry.link);
      if (path === "") return;
      imply(path);
      if (entry.type === "5") directories.set(path, true);
      if (path.slice(path.lastIndexOf("/") + 1).startsWith(".wh.")) whiteouts.push(path);
    },
    size: () => size,
    whiteouts,
    implied: () => [...directories].filter(([, described]) => !described).map(([path]) => path),
  };
}

/** `./a//b/` is `a/b`. @throws EngineError `invalid-archive` for a name with `..` in it */
export function cleanName(name: string): string {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) {
    const shown = JSON.stringify(Buffer.from(name, "latin1").toString());
    throw new EngineError("invalid-archive", `entry ${shown} leaves the root of the image`);
  }
  return parts.join("/");
}

const TAR_OPTIONS = [
  "--extract",
  "--file=-",
  "--numeric-owner",
  "--same-owner",
  "--preserve-permissions",
  "--delay-directory-restore",
  "--xattrs",
  "--xattrs-include=*",
  // Marks of overlayfs are ours to set: a layer that brings its own could show what is not its.
  "--xattrs-exclude=trusted.overlay.*",
  "--exclude=.wh.*",
  "--warning=no-unknown-keyword",
  "--warning=no-timestamp",
];

function startTar(into: string) {
  const child = spawn("tar", [...TAR_OPTIONS, `--directory=${into}`], {
    stdio: ["pipe", "ignore", "pipe"],
    env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
  });
  let stderr = "";
  let closed = false;
  child.stderr.on("data", (chunk: Buffer) => {
    if (stderr.length < 4096) stderr += chunk.toString();
  });
  child.stdin.on("error", () => {}); // it ended early: its exit code and words tell why
  const exit = new Promise<{ code: number | null; error?: Error }>((resolve) => {
    child.on("error", (error) => resolve({ code: null, error }));
    child.on("close", (code) => resolve({ code }));
  }).then((result) => {
    closed = true;
    return result;
  });
  const finish = async () => {
    const { code, error } = await exit;
    if (error) throw new EngineError("unsupported", `cannot run tar: ${error.message}`, { hint: "Install GNU tar." });
    if (code === 0) return;
    if (stderr.includes("No space left on device")) {
      throw new EngineError("disk-full", "no space left on device while unpacking a layer");
    }
    throw new EngineError(
      "invalid-archive",
      `cannot unpack a layer: ${firstComplaint(stderr) || `tar ended with ${code}`}`,
    );
  };
  return {
    async write(chunk: Buffer) {
      if (closed) return finish();
      if (child.stdin.destroyed || child.stdin.write(chunk)) return;
      await Promise.race([exit, drained(child.stdin)]);
    },
    async finish() {
      child.stdin.end();
      await finish();
    },
    async kill() {
      child.kill("SIGKILL");
      await exit;
    },
  };
}

function firstComplaint(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => line !== "" && !line.includes("Removing leading"));
  return (lines[0] ?? "").replace(/^tar: /, "");
}

function drained(stream: NodeJS.EventEmitter): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stream.off("drain", done);
      stream.off("close", done);
      resolve();
    };
    stream.on("drain", done);
    stream.on("close", done);
  });
}
