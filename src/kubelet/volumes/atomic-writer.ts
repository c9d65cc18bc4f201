import {
  chmod,
  chown,
  lchown,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  unlink,
  writeFile,
} from "node:fs/promises";
import { dirname, isAbsolute, join, normalize } from "node:path";
import { type Clock, hasCode, type Random } from "#base";

/** One file of a volume. */
export interface FileProjection {
  readonly data: Buffer;
  /** Permission bits. */
  readonly mode: number;
  /** Owner, where it is not root. */
  readonly user?: number;
}

/** Files by their path below the volume. */
export type Payload = ReadonlyMap<string, FileProjection>;

const DATA = "..data";
const NEW_DATA = "..data_tmp";

/**
 * Makes `directory` show exactly `payload`, all of it at one moment: the files lie in a directory named by the time, `..data`
 * links to it and is replaced by a rename; what users see are links through `..data`. Nothing is written when nothing
 * changed. What a crash left half done is cleared away. Not for two callers at once.
 *
 * `beforePublish` may set owners on the new files before anybody sees them.
 *
 * Source: https://kubernetes.io/docs/concepts/configuration/configmap/#mounted-configmaps-are-updated-automatically
 *
 * @returns whether anything was written
 * @throws Error `invalid path: …` for a path that would leave the volume or use its reserved names
 */
export async function writeAtomically(
  directory: string,
  payload: Payload,
  deps: { clock: Clock; random: Random; beforePublish?: (path: string) => Promise<void> },
): Promise<boolean> {
  const files = checked(payload);
  const current = await linkTarget(join(directory, DATA));
  const written = current === undefined || !(await shows(join(directory, current), files));
  if (written) await publish(directory, files, deps);
  await linkVisible(directory, files);
  if (written) await prune(directory, files);
  return written;
}

/** @throws Error for a path that is empty, absolute, too long, has `..` in it or begins with it */
export function checkPayloadPath(path: string): void {
  if (path === "") throw new Error('invalid path: must not be empty: ""');
  if (isAbsolute(path)) throw new Error(`invalid path: must be relative path: ${path}`);
  if (Buffer.byteLength(path) > 4096) throw new Error("invalid path: must be less than or equal to 4096 characters");
  const elements = path.split("/");
  for (const element of elements) {
    if (element === "..") throw new Error(`invalid path: must not contain '..': ${path}`);
    if (Buffer.byteLength(element) > 255) {
      throw new Error("invalid path: filenames must be less than or equal to 255 characters");
    }
  }
  if (elements[0]?.startsWith("..")) throw new Error(`invalid path: must not start with '..': ${path}`);
  if (path.includes("\0")) throw new Error("invalid path: must not contain a NUL character");
}

function checked(payload: Payload): Map<string, FileProjection> {
  const files = new Map<string, FileProjection>();
  for (const [path, file] of payload) {
    checkPayloadPath(path);
    files.set(normalize(path).replace(/\/$/, ""), file);
  }
  return files;
}

async function publish(
  directory: string,
  files: ReadonlyMap<string, FileProjection>,
  { clock, random, beforePublish }: { clock: Clock; random: Random; beforePublish?: (path: string) => Promise<void> },
): Promise<void> {
  const name = timestampName(clock.now(), random);
  const target = join(directory, name);
  try {
    await mkdir(target);
    await chmod(target, 0o755);
    for (const [path, file] of files) await writeOne(join(target, path), file);
    await beforePublish?.(target);
    await rm(join(directory, NEW_DATA), { force: true });
    await symlink(name, join(directory, NEW_DATA));
    await rename(join(directory, NEW_DATA), join(directory, DATA));
  } catch (error) {
    await rm(target, { recursive: true, force: true });
    throw error;
  }
}

async function writeOne(path: string, file: FileProjection): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  // Nobody else may read it before it has its mode; `wx`: the directory is new, nothing can be there.
  await writeFile(path, file.data, { mode: 0o600, flag: "wx" });
  await chmod(path, file.mode & 0o777);
  if (file.user !== undefined) await chown(path, file.user, -1);
}

/** `..2006_01_02_15_04_05.123456789`, UTC; the part behind the point only makes it unique. */
function timestampName(now: number, random: Random): string {
  const [date = "", time = ""] = new Date(now).toISOString().split("T");
  const digits = String(Math.floor(random.next() * 1e10)).padStart(10, "0");
  return `..${date.replaceAll("-", "_")}_${time.slice(0, 8).replaceAll(":", "_")}.${digits}`;
}

/** Links from what users see, one for each first path element, into `..data`. */
async function linkVisible(directory: string, files: ReadonlyMap<string, FileProjection>): Promise<void> {
  for (const [name, file] of firstElements(files)) {
    const link = join(directory, name);
    if ((await linkTarget(link)) !== undefined) continue;
    try {
      await symlink(join(DATA, name), link);
    } catch (error) {
      // A mount point made for another volume that is nested in this one.
      if (hasCode(error, "EEXIST")) continue;
      throw error;
    }
    if (file.user !== undefined) await lchown(link, file.user, -1);
  }
}

/** Removes links to what is gone and all time directories but the current one. */
async function prune(directory: string, files: ReadonlyMap<string, FileProjection>): Promise<void> {
  const current = await linkTarget(join(directory, DATA));
  const visible = firstElements(files);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.name === DATA || entry.name === current) continue;
    if (entry.name.startsWith("..")) await rm(path, { recursive: true, force: true });
    else if (entry.isSymbolicLink() && !visible.has(entry.name)) await unlink(path);
  }
}

function firstElements(files: ReadonlyMap<string, FileProjection>): Map<string, FileProjection> {
  const result = new Map<string, FileProjection>();
  for (const [path, file] of files) result.set(path.split("/", 1)[0] as string, file);
  return result;
}

/** True when the directory has these files with this content, and no others. */
async function shows(directory: string, files: ReadonlyMap<string, FileProjection>): Promise<boolean> {
  const found = new Set<string>();
  try {
    for (const entry of await readdir(directory, { withFileTypes: true, recursive: true })) {
      if (entry.isDirectory()) continue;
      found.add(join(entry.parentPath, entry.name).slice(directory.length + 1));
    }
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
  if (found.size !== files.size) return false;
  for (const [path, file] of files) {
    if (!found.has(path)) return false;
    const at = join(directory, path);
    if (!(await lstat(at)).isFile() || !(await readFile(at)).equals(file.data)) return false;
  }
  return true;
}

async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    if (hasCode(error, "ENOENT", "EINVAL")) return undefined;
    throw error;
  }
}
