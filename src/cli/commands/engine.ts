import type { Command } from "commander";
import { readConfig } from "#cluster";
import { type DaemonConnection, requireDaemon } from "../daemon.ts";
import { EXIT, ExitError } from "../program.ts";
import { formatColumns } from "../table.ts";

/** What `/engine/v1/containers` gives for each container. */
interface ContainerRow {
  id: string;
  name: string;
  image: string;
  imageId: string;
  state: string;
  exitCode?: number;
  createdAt: number;
  pod: string;
}

export function addEngineCommands(program: Command): void {
  program
    .command("ps")
    .description("list containers")
    .option("-a, --all", "those that have ended too")
    .option("--format <template>", "e.g. '{{.ID}} {{.Name}} {{.Image}} {{.State}}'")
    .option("-o, --output <format>", "json")
    .option("--no-trunc", "whole ids")
    .action(ps);
  program
    .command("inspect <id>")
    .description("print a container's whole state as JSON")
    .action((id: string) =>
      withDaemon(async ({ client }) =>
        print(await client.request({ method: "GET", path: await pathOfContainer(client, id) })),
      ),
    );
  program
    .command("kill <id>")
    .description("send a signal to a container")
    .option("-s, --signal <signal>", "signal name or number", "KILL")
    .action((id: string, options: { signal: string }) =>
      withDaemon(async ({ client }) => {
        await client.request({
          method: "POST",
          path: `${await pathOfContainer(client, id)}/kill`,
          query: { signal: options.signal },
        });
        process.stdout.write(`${id}\n`);
      }),
    );
  program
    .command("logs <id>")
    .description("print a container's log")
    .option("-f, --follow", "go on as it grows")
    .option("--tail <lines>", "the last lines only")
    .option("-t, --timestamps", "with times")
    .action((id: string, options: { follow?: boolean; tail?: string; timestamps?: boolean }) =>
      withDaemon(async (daemon) => {
        const path = `${await pathOfContainer(daemon.client, id)}/logs`;
        const query: Record<string, string> = {};
        if (options.follow) query.follow = "true";
        if (options.tail !== undefined) query.tail = options.tail;
        if (options.timestamps) query.timestamps = "true";
        await daemon.pipe(path, query, process.stdout);
      }),
    );
  program
    .command("events")
    .description("print the engine's events as they come, a JSON object a line")
    .action(() => withDaemon((daemon) => daemon.pipe("/engine/v1/events", {}, process.stdout)));
}

async function ps(options: { all?: boolean; format?: string; output?: string; trunc: boolean }): Promise<void> {
  await withDaemon(async ({ client }) => {
    const all = (await client.request({ method: "GET", path: "/engine/v1/containers" })) as { items: ContainerRow[] };
    const rows = all.items.filter((row) => options.all || row.state === "running");
    if (options.output === "json") return print(rows);
    const fields = (row: ContainerRow): Record<string, string> => ({
      ID: options.trunc ? row.id.slice(0, 12) : row.id,
      Name: row.name,
      Image: row.image,
      State: row.state,
      Pod: row.pod,
      ExitCode: row.exitCode === undefined ? "" : String(row.exitCode),
      CreatedAt: new Date(row.createdAt).toISOString(),
    });
    if (options.format) {
      for (const row of rows) process.stdout.write(`${expand(options.format, fields(row))}\n`);
      return;
    }
    const head = ["ID", "NAME", "IMAGE", "STATE", "CREATED"];
    const body = rows.map((row) => [
      fields(row).ID!,
      row.name,
      row.image,
      row.state === "exited" ? `exited (${row.exitCode})` : row.state,
      fields(row).CreatedAt!,
    ]);
    process.stdout.write(formatColumns([head, ...body]));
  });
}

/** Replaces `{{.Field}}`. @throws ExitError 2 for a field that there is not */
export function expand(template: string, fields: Readonly<Record<string, string>>): string {
  return template.replaceAll("\\t", "\t").replace(/\{\{\s*\.?(\w*)\s*\}\}/g, (_, name: string) => {
    const value = fields[name];
    if (value === undefined)
      throw new ExitError(
        EXIT.usage,
        `the template names the field "${name}"; there are ${Object.keys(fields).join(", ")}`,
      );
    return value;
  });
}

/** The container whose id starts so, or whose name is so. @throws ExitError 3 */
async function pathOfContainer(client: DaemonConnection["client"], id: string): Promise<string> {
  const { items } = (await client.request({ method: "GET", path: "/engine/v1/containers" })) as {
    items: ContainerRow[];
  };
  const found = items.filter((row) => row.id.startsWith(id));
  const named = items.filter((row) => row.name === id);
  const exact = found.length > 0 ? found : named.length > 1 ? named.filter((row) => row.state === "running") : named;
  if (exact.length === 0) throw new ExitError(EXIT.absent, `there is no container "${id}"`);
  if (exact.length > 1) throw new ExitError(EXIT.usage, `"${id}" fits ${exact.length} containers; give more of the id`);
  return `/engine/v1/containers/${exact[0]!.id}`;
}

export async function withDaemon(use: (daemon: DaemonConnection) => Promise<void>): Promise<void> {
  const daemon = await requireDaemon(readConfig(process.env));
  try {
    await use(daemon);
  } finally {
    daemon.close();
  }
}

export function print(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}
