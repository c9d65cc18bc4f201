import { constants } from "node:fs";
import { chmod, type FileHandle, lstat, mkdir, open, readFile, readlink, stat } from "node:fs/promises";
import { isAbsolute, join, relative } from "node:path";
import { hasCode } from "#base";

const MAX_LINKS = 40;

/**
 * The path below `volume` that `subPath` leads to, links resolved, never leaving the volume: each step is taken from an open
 * directory, so that a container which swaps directories for links while this runs gains nothing. Directories that are
 * missing are made with the volume's own permissions when `create` is set.
 *
 * Source: https://kubernetes.io/docs/concepts/storage/volumes/#using-subpath, CVE-2017-1002101, CVE-2021-25741
 *
 * @throws Error for a path that is absolute, has `..`, leaves the volume, or (without `create`) is not there
 */
export async function resolveSubPath(volume: string, subPath: string, options: { create: boolean }): Promise<string> {
  if (isAbsolute(subPath)) throw new Error(`error SubPath \`${subPath}\` must not be an absolute path`);
  if (subPath.split("/").includes("..")) {
    throw new Error(`unable to provision SubPath \`${subPath}\`: must not contain '..'`);
  }
  const mode = (await stat(volume)).mode & 0o7777;
  await using walk = await startWalk(volume);
  const todo = elements(subPath);
  for (let links = 0; todo.length > 0; ) {
    const name = todo.shift() as string;
    if (name === "..") {
      await walk.up();
      continue;
    }
    const at = walk.at(name);
    const found = await lstat(at).catch((error: unknown) => {
      if (hasCode(error, "ENOENT")) return undefined;
      throw error;
    });
    if (!found) {
      if (!options.create) throw new Error(`${walk.path(name)} does not exist`);
      await mkdir(at, { mode });
      // Past the umask.
      await chmod(at, mode);
      await walk.down(name);
    } else if (found.isSymbolicLink()) {
      if (++links > MAX_LINKS) throw new Error(`too many links in ${subPath}`);
      await walk.follow(await readlink(at), todo);
    } else if (found.isDirectory()) await walk.down(name);
    else if (todo.length > 0) throw new Error(`${walk.path(name)} is not a directory`);
    else return walk.path(name);
  }
  return walk.path();
}

/** Text of a file below `volume`, never leaving it. At most `maxBytes`. */
export async function readBelow(volume: string, path: string, maxBytes: number): Promise<string> {
  const resolved = await resolveSubPath(volume, path, { create: false });
  const at = join(volume, resolved);
  await using file = await open(at, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const info = await file.stat();
  if (!info.isFile()) throw new Error(`${at} is not a file`);
  if (info.size > maxBytes) throw new Error(`${at} has more than ${maxBytes} bytes`);
  return await readFile(file, "utf8");
}

interface Walk extends AsyncDisposable {
  /** Path of an entry of the directory where the walk is, for system calls. */
  at(name: string): string;
  /** Path from the volume, for messages and as the result. */
  path(name?: string): string;
  down(name: string): Promise<void>;
  up(): Promise<void>;
  follow(link: string, todo: string[]): Promise<void>;
}

async function startWalk(volume: string): Promise<Walk> {
  const stack: { name: string; handle: FileHandle }[] = [];
  const openDirectory = (path: string) =>
    open(path, constants.O_RDONLY | constants.O_DIRECTORY | (stack.length > 0 ? constants.O_NOFOLLOW : 0));
  stack.push({ name: "", handle: await openDirectory(volume) });
  const names = () => stack.slice(1).map((step) => step.name);
  // Linux alone has these paths of open directories; elsewhere nothing runs that could play tricks.
  const here = () =>
    process.platform === "linux" ? `/proc/self/fd/${stack.at(-1)?.handle.fd}` : join(volume, ...names());
  return {
    at: (name) => `${here()}/${name}`,
    path: (name) => [...names(), ...(name === undefined ? [] : [name])].join("/"),
    async down(name) {
      stack.push({ name, handle: await openDirectory(`${here()}/${name}`) });
    },
    async up() {
      if (stack.length === 1) throw new Error("the path leaves the volume");
      await stack.pop()?.handle.close();
    },
    async follow(link, todo) {
      let target = link;
      if (isAbsolute(link)) {
        target = relative(volume, link);
        if (target.startsWith("..")) throw new Error(`a link to ${link} leaves the volume`);
        while (stack.length > 1) await stack.pop()?.handle.close();
      }
      todo.unshift(...elements(target));
    },
    async [Symbol.asyncDispose]() {
      for (const { handle } of stack) await handle.close();
    },
  };
}

const elements = (path: string) => path.split("/").filter((element) => element !== "" && element !== ".");
