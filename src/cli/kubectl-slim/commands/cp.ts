import { createReadStream, createWriteStream } from "node:fs";
import { lstat, mkdir, readdir, readlink } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import type { Pack } from "tar-stream";
import type { ExecSession } from "#kinds";
import { type CommandSpec, type Context, flag } from "../context.ts";
import type { Environment } from "../environment.ts";
import { CommandError } from "../errors.ts";

export const cp: CommandSpec = {
  name: "cp",
  usage: "cp <file-spec-src> <file-spec-dest>",
  short: "Copy files and directories to and from containers",
  flags: [
    flag("container", "string", "name of the container", { short: "c" }),
    flag("no-preserve", "bool", "leave owner and mode to the container"),
    flag("retries", "int", "taken and ignored"),
  ],
  async run(context) {
    const { args, environment } = context;
    if (args.length !== 2) throw new CommandError("source and destination are required");
    const [from, to] = args.map((text) => parseSpec(text, environment)) as [Spec, Spec];
    if (from.pod && to.pod) throw new CommandError("one of src or dest must be a local file specification");
    if (!from.pod && !to.pod) throw new CommandError("one of src or dest must be a remote file specification");
    if (from.path === "" || to.path === "") throw new CommandError("filepath can not be empty");
    await (from.pod ? download(context, from, to.path) : upload(context, from.path, to));
  },
};

export interface Spec {
  readonly pod?: string;
  readonly namespace?: string;
  readonly path: string;
}

/** `[[namespace/]pod:]path`. On Windows `C:\x` is a path, not a pod. @throws CommandError */
export function parseSpec(text: string, { platform, path }: Pick<Environment, "platform" | "path">): Spec {
  if (platform === "win32" && (/^[A-Za-z]:[\\/]/.test(text) || path.isAbsolute(text))) return { path: text };
  const colon = text.indexOf(":");
  if (colon === 0) throw new CommandError("filespec must match the canonical format: [[namespace/]pod:]file/path");
  if (colon < 0) return { path: text };
  const where = text.slice(0, colon).split("/");
  const file = text.slice(colon + 1);
  if (where.length === 1) {
    // a local path that begins with a dot or a slash may hold a colon
    return /^[./\\]/.test(text) ? { path: text } : { pod: where[0]!, path: file };
  }
  if (where.length === 2 && !/^[./\\]/.test(text)) return { namespace: where[0]!, pod: where[1]!, path: file };
  if (/^[./\\]/.test(text)) return { path: text };
  throw new CommandError("filespec must match the canonical format: [[namespace/]pod:]file/path");
}

function run(
  { streams, flags, namespace }: Context,
  spec: Spec,
  command: readonly string[],
  stdin: boolean,
): Promise<ExecSession> {
  const container = flags.string("container");
  return streams.exec(spec.namespace ?? namespace, spec.pod!, command, { stdin, ...(container ? { container } : {}) });
}

async function upload(context: Context, source: string, to: Spec): Promise<void> {
  const { path } = context.environment;
  const stat = await lstat(source).catch(() => {
    throw new CommandError(`${source} doesn't exist in local filesystem`);
  });
  const target = await targetIn(context, to, path.basename(source));
  const at = target.lastIndexOf("/");
  const [directory, name] = [target.slice(0, at) || (at === 0 ? "/" : "."), target.slice(at + 1)];
  const { pack } = await import("tar-stream");
  const archive = pack();
  const flags = context.flags.bool("no-preserve") ? ["--no-same-permissions", "--no-same-owner"] : [];
  const session = await run(
    context,
    to,
    ["tar", ...flags, "-xmf", "-", ...(directory === "." ? [] : ["-C", directory])],
    true,
  );
  const written = pipeline(archive, session.stdin!);
  written.catch(() => undefined); // the exit code tells
  const errors = textOf(session.stderr);
  session.stdout?.resume();
  await (stat.isDirectory()
    ? addDirectory(archive, source, name, context.environment)
    : addFile(archive, source, name));
  archive.finalize();
  const { exitCode } = await session.done;
  const said = await errors;
  if (said) context.err(said);
  if (exitCode !== 0) throw new CommandError(`command terminated with exit code ${exitCode}`, { bare: true });
}

/** A directory as target takes the source's own name. */
async function targetIn(context: Context, to: Spec, name: string): Promise<string> {
  const session = await run(context, to, ["test", "-d", to.path], false);
  session.stdout?.resume();
  session.stderr?.resume();
  const { exitCode } = await session.done;
  const path = to.path.length > 1 ? to.path.replace(/\/$/, "") : to.path;
  return exitCode === 0 ? `${path === "/" ? "" : path}/${name}` : path;
}

async function addFile(archive: Pack, source: string, name: string): Promise<void> {
  const stat = await lstat(source);
  if (stat.isSymbolicLink())
    return void archive.entry({ name, type: "symlink", linkname: await readlink(source), mode: stat.mode & 0o7777 });
  const entry = archive.entry({ name, size: stat.size, mode: stat.mode & 0o7777, mtime: stat.mtime });
  await pipeline(createReadStream(source), entry);
}

async function addDirectory(archive: Pack, source: string, name: string, environment: Environment): Promise<void> {
  const stat = await lstat(source);
  archive.entry({ name: `${name}/`, type: "directory", mode: stat.mode & 0o7777, mtime: stat.mtime });
  for (const child of await readdir(source, { withFileTypes: true })) {
    const [from, to] = [environment.path.join(source, child.name), `${name}/${child.name}`];
    await (child.isDirectory() ? addDirectory(archive, from, to, environment) : addFile(archive, from, to));
  }
}

async function download(context: Context, from: Spec, to: string): Promise<void> {
  const { path, files } = context.environment;
  const base = from.path.replace(/\/+$/, "").split("/").at(-1) ?? "";
  const target = files.exists(to) && files.isDirectory(to) ? path.join(to, base) : to;
  const session = await run(context, from, ["tar", "cf", "-", from.path], false);
  const errors = textOf(session.stderr);
  const prefix = from.path.replace(/^\/+/, "").replace(/\/+$/, "");
  const { extract } = await import("tar-stream");
  const unpacking = extract();
  const unpacked = pipeline(session.stdout!, unpacking);
  for await (const entry of unpacking) {
    const inner = entry.header.name.replace(/^\.?\/+/, "").replace(/\/+$/, "");
    const rest =
      inner === prefix || prefix === "." || prefix === ""
        ? inner.slice(prefix === "." ? 0 : prefix.length)
        : inner.startsWith(`${prefix}/`)
          ? inner.slice(prefix.length + 1)
          : undefined;
    const parts = (rest ?? "").split("/").filter(Boolean);
    // nothing of an archive may land outside of its target
    if (rest === undefined || parts.includes("..")) {
      context.err(`warning: skipping entry outside of the target: ${entry.header.name}\n`);
      entry.resume();
      continue;
    }
    const file = path.join(target, ...parts);
    if (entry.header.type === "directory") {
      await mkdir(file, { recursive: true });
      entry.resume();
    } else if (entry.header.type === "file") {
      await mkdir(path.dirname(file), { recursive: true });
      await pipeline(entry, createWriteStream(file, { mode: (entry.header.mode ?? 0o644) & 0o777 }));
    } else {
      if (entry.header.type === "symlink")
        context.err(
          `warning: skipping symlink: ${JSON.stringify(file)} -> ${JSON.stringify(entry.header.linkname)} (consider using "kubectl exec -n "${from.namespace ?? context.namespace}" "${from.pod}" -- tar cf - "${from.path}" | tar xf -")\n`,
        );
      entry.resume();
    }
  }
  await unpacked;
  const { exitCode } = await session.done;
  const said = await errors;
  if (said) context.err(said);
  if (exitCode !== 0) throw new CommandError(`command terminated with exit code ${exitCode}`, { bare: true });
}

async function textOf(stream: ExecSession["stderr"]): Promise<string> {
  return stream ? Buffer.concat(await stream.toArray()).toString("utf8") : "";
}
