import { execFile } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename } from "node:path";
import { promisify } from "node:util";
import { pack } from "tar-stream";
import type { ImageConfig } from "../../port.ts";
import type { Platform } from "./platform.ts";

/** An image made from a program of the host: one layer, no registry. */
export interface Builtin {
  readonly reference: string;
  /** Changes when the program does; with it the image is made anew. */
  readonly fingerprint: string;
  readonly config: ImageConfig;
  /** The layer's tar, the same bytes for the same program. */
  layer(): Promise<AsyncIterable<Buffer>>;
}

/** Path of the first that exists. */
export function findProgram(candidates: readonly string[]): string | undefined {
  return candidates.find((path) => existsSync(path));
}

export const BUSYBOX_PLACES: readonly string[] = ["/bin/busybox", "/usr/bin/busybox"];
export const PAUSE_PLACES: readonly string[] = ["/usr/bin/catatonit", "/usr/libexec/podman/catatonit"];

/** `slim/busybox:latest`: a shell and the usual tools, from the host's static busybox. */
export function busyboxImage(program: string): Builtin {
  return {
    reference: "slim/busybox:latest",
    fingerprint: fingerprint(program),
    config: { Env: [`PATH=${PATH}`], Cmd: ["sh"] },
    async layer() {
      const { stdout } = await promisify(execFile)(program, ["--list-full"]);
      const applets = appletPlaces(stdout.split("\n").filter(Boolean));
      return tarOf([
        ...BUSYBOX_DIRECTORIES,
        { name: "bin/busybox", mode: 0o755, content: readFileSync(program) },
        ...applets.map((name) => ({ name, link: "bin/busybox" })),
        ...BUSYBOX_FILES.map(([name, content, mode]) => ({ name, mode: mode ?? 0o644, content: Buffer.from(content) })),
      ]);
    },
  };
}

/** `nebula/pause:slim`: one small static program that waits and reaps. */
export function pauseImage(program: string): Builtin {
  const isCatatonit = basename(program) === "catatonit";
  const name = isCatatonit ? "catatonit" : "pause";
  return {
    reference: "nebula/pause:slim",
    fingerprint: fingerprint(program),
    config: { Env: [`PATH=${PATH}`], Entrypoint: isCatatonit ? ["/catatonit", "-P"] : ["/pause"] },
    layer: async () => tarOf([{ name, mode: 0o755, content: readFileSync(program) }]),
  };
}

/** The OCI config of an image of one layer. */
export function builtinDocument(config: ImageConfig, diffId: string, platform: Platform): Buffer {
  return Buffer.from(
    JSON.stringify({
      architecture: platform.architecture,
      os: platform.os,
      created: new Date(0).toISOString(),
      config,
      rootfs: { type: "layers", diff_ids: [diffId] },
    }),
  );
}

/** Raised when what is made from the same program changes. */
const FORM = 1;

function fingerprint(program: string): string {
  const { size, mtimeMs } = statSync(program);
  return `${FORM}:${program}:${size}:${mtimeMs}`;
}

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

interface File {
  readonly name: string;
  readonly mode?: number;
  readonly content?: Buffer;
  /** Hard link to this. */
  readonly link?: string;
}

const directory = (name: string, mode = 0o755): File => ({ name: `${name}/`, mode });
const BUSYBOX_DIRECTORIES: readonly File[] = [
  ...["bin", "dev", "etc", "home", "proc", "run", "sbin", "sys", "usr", "usr/bin", "usr/sbin", "var"].map((d) =>
    directory(d),
  ),
  directory("root", 0o700),
  directory("tmp", 0o1777),
  directory("var/tmp", 0o1777),
  directory("var/www"),
];
const BUSYBOX_FILES: readonly (readonly [name: string, content: string, mode?: number])[] = [
  [
    "etc/passwd",
    "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\nwww-data:x:33:33:www-data:/var/www:/bin/false\nnobody:x:65534:65534:nobody:/home:/bin/false\n",
  ],
  ["etc/group", "root:x:0:\ndaemon:x:1:\ntty:x:5:\nwww-data:x:33:\nusers:x:100:\nnogroup:x:65534:\n"],
  ["etc/shadow", "root:*:::::::\n", 0o600],
  ["etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"],
];

/** Where the list says, and all in /bin too, as images have it that scripts are written for. */
function appletPlaces(listed: readonly string[]): readonly string[] {
  const places = listed.flatMap((path) => [path, `bin/${basename(path)}`]);
  return [...new Set(places)].filter((path) => path.includes("/") && path !== "bin/busybox").toSorted();
}

function tarOf(files: readonly File[]): AsyncIterable<Buffer> {
  const archive = pack();
  for (const { name, mode = 0o755, content, link } of files) {
    const common = { name, mode, uid: 0, gid: 0, mtime: new Date(0) };
    if (link !== undefined) archive.entry({ ...common, type: "link", linkname: link });
    else if (content) archive.entry({ ...common, type: "file" }, content);
    else archive.entry({ ...common, type: "directory" });
  }
  archive.finalize();
  return archive as unknown as AsyncIterable<Buffer>;
}
