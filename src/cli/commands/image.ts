import type { Command } from "commander";
import { createReadStream } from "node:fs";
import { access } from "node:fs/promises";
import { EXIT, ExitError } from "../program.ts";
import { formatColumns } from "../table.ts";
import { print, withDaemon } from "./engine.ts";

interface ImageRow {
  id: string;
  tags: string[];
  digests: string[];
  size: number;
  createdAt: number;
  pinned: boolean;
}

export function addImageCommands(program: Command): void {
  const image = program.command("image").description("the engine's images");
  image
    .command("load [archives...]")
    .description("load docker-archives or OCI layouts (tar, plain, gzip or zstd); - or nothing: standard input")
    .action((archives: string[]) =>
      withDaemon(async (daemon) => {
        for (const archive of archives.length > 0 ? archives : ["-"]) {
          if (archive !== "-")
            await access(archive).catch(() =>
              Promise.reject(new ExitError(EXIT.absent, `there is no file "${archive}"`)),
            );
          const source = archive === "-" ? process.stdin : createReadStream(archive);
          const { items } = (await daemon.upload("/engine/v1/images/load", source)) as { items: ImageRow[] };
          for (const row of items) process.stdout.write(`Loaded image: ${row.tags[0] ?? row.id}\n`);
        }
      }),
    );
  image
    .command("pull <reference>")
    .description("pull an image from its registry, or from the mirror that is set")
    .option("-u, --user <name:password>", "credentials")
    .action((reference: string, options: { user?: string }) =>
      withDaemon(async ({ client }) => {
        const [username, ...rest] = options.user?.split(":") ?? [];
        const body = { reference, ...(username ? { username, password: rest.join(":") } : {}) };
        const row = (await client.request({ method: "POST", path: "/engine/v1/images/pull", body })) as ImageRow;
        process.stdout.write(`${row.tags[0] ?? row.id}\n`);
      }),
    );
  image
    .command("ls")
    .description("list images")
    .option("-o, --output <format>", "json")
    .option("-q, --quiet", "ids only")
    .action((options: { output?: string; quiet?: boolean }) =>
      withDaemon(async ({ client }) => {
        const { items } = (await client.request({ method: "GET", path: "/engine/v1/images" })) as { items: ImageRow[] };
        if (options.output === "json") return print(items);
        if (options.quiet) return void process.stdout.write(items.map((row) => `${row.id}\n`).join(""));
        const rows = items.flatMap((row) =>
          (row.tags.length > 0 ? row.tags : row.digests.slice(0, 1)).map((tag) => [
            tag,
            row.id.slice(7, 19),
            megabytes(row.size),
          ]),
        );
        process.stdout.write(formatColumns([["IMAGE", "ID", "SIZE"], ...rows]));
      }),
    );
  image
    .command("rm <references...>")
    .description("remove images by reference or id")
    .action((references: string[]) =>
      withDaemon(async ({ client }) => {
        for (const reference of references) {
          await client.request({ method: "POST", path: "/engine/v1/images/remove", body: { reference } });
          process.stdout.write(`Removed: ${reference}\n`);
        }
      }),
    );
  image
    .command("prune")
    .description("remove the images that no container uses")
    .action(() =>
      withDaemon(async ({ client }) => {
        const result = (await client.request({ method: "POST", path: "/engine/v1/images/prune", body: {} })) as {
          removed: string[];
          freedBytes: number;
        };
        for (const name of result.removed) process.stdout.write(`Removed: ${name}\n`);
        process.stdout.write(`Freed: ${megabytes(result.freedBytes)}\n`);
      }),
    );
}

function megabytes(bytes: number): string {
  return bytes < 1e5 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
