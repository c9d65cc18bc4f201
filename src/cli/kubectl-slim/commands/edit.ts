import { pathOf } from "#client";
import { deepEqual } from "#base";
import { type ApiObject, schemaNameOf } from "#kinds";
import { parse } from "yaml";
import {
  type CommandSpec,
  type Context,
  FIELD_MANAGER,
  FILENAME,
  flag,
  OUTPUT,
  RECURSIVE,
  SHOW_MANAGED,
  TEMPLATE,
} from "../context.ts";
import { type Environment, withoutCarriageReturns } from "../environment.ts";
import { CommandError } from "../errors.ts";
import { toYaml } from "../printers/yaml.ts";
import { cleaned, printResult } from "../printers/objects.ts";
import { type Asked, askedFor } from "../resource-args.ts";
import { threeWayMerge } from "../three-way-merge.ts";
import { validation, withKind } from "./apply.ts";

export const edit: CommandSpec = {
  name: "edit",
  usage: "edit (RESOURCE/NAME | -f FILENAME)",
  short: "Edit a resource on the server",
  flags: [
    FILENAME,
    RECURSIVE,
    OUTPUT,
    TEMPLATE,
    SHOW_MANAGED,
    FIELD_MANAGER("kubectl-edit"),
    flag("subresource", "string", "status, scale, …"),
    flag("validate", "string", "strict, warn or ignore", { default: "strict", bare: "strict" }),
    flag("windows-line-endings", "bool", "lines that end as on Windows"),
  ],
  async run(context) {
    const { args, flags } = context;
    if (args.length === 0 && flags.list("filename").length === 0)
      throw new CommandError("must specify one of -f and -k");
    for (const asked of await askedFor(context, args)) await editOne(context, asked);
  },
};

/** `KUBE_EDITOR`, `EDITOR`, else what the platform has. */
export function editorOf({ env, platform }: Pick<Environment, "env" | "platform">): string[] {
  const text = env.KUBE_EDITOR || env.EDITOR || (platform === "win32" ? "notepad" : "vi");
  return text.match(/"[^"]*"|'[^']*'|\S+/g)?.map((word) => word.replace(/^(["'])(.*)\1$/, "$2")) ?? [text];
}

const HEAD = `# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.
#
`;

async function editOne(context: Context, { resource, name = "", namespace }: Asked): Promise<void> {
  const { client, environment, flags } = context;
  const { files, path } = environment;
  const before = withKind((await client.get(resource, name, { namespace })) as ApiObject, resource);
  const shown = cleaned(context, before);
  const windows = flags.given("windows-line-endings")
    ? flags.bool("windows-line-endings")
    : environment.platform === "win32";
  const ends = (text: string) => (windows ? text.replace(/\n/g, "\r\n") : text);
  const directory = files.temporary("kubectl-edit-");
  const file = path.join(directory, `${name}.yaml`);
  try {
    let text = `${HEAD}${toYaml(shown)}`;
    for (;;) {
      files.write(file, ends(text), 0o600);
      const code = await environment.runEditor(editorOf(environment), file);
      if (code !== 0)
        throw new CommandError(
          `there was a problem with the editor ${JSON.stringify(editorOf(environment).join(" "))}`,
        );
      const edited = withoutCarriageReturns(files.read(file));
      const value = parse(edited) as ApiObject | null;
      if (value === null || (edited === text && deepEqual(value, shown)))
        return context.err("Edit cancelled, no changes made.\n");
      if (deepEqual(value, shown)) return context.err("Edit cancelled, no changes made.\n");
      try {
        printResult(context, await send(context, { resource, name, namespace }, shown, value), "edited");
        return;
      } catch (error) {
        const body = edited.replace(/^#.*\n/gm, "");
        const again = `${HEAD}${`${(error as Error).message}`
          .split("\n")
          .map((line) => `# ${line}\n`)
          .join("")}#\n${body}`;
        // the same fault a second time: the user has given up
        if (text === again) throw error;
        text = again;
      }
    }
  } finally {
    files.remove(directory);
  }
}

async function send(
  { client, flags }: Context,
  { resource, name = "", namespace }: Asked,
  before: ApiObject,
  after: ApiObject,
): Promise<ApiObject> {
  if (after.metadata?.name !== before.metadata.name)
    throw new CommandError("At least one of apiVersion, kind and name was changed");
  const { patch, strategic } = threeWayMerge(
    before,
    after,
    before,
    schemaNameOf(resource.group, resource.version, resource.kind),
  );
  const subresource = flags.string("subresource");
  const answer = (await client.request({
    method: "PATCH",
    path: pathOf(resource, { namespace, name, ...(subresource ? { subresource } : {}) }),
    query: { fieldManager: flags.string("field-manager"), fieldValidation: validation(flags) },
    body: patch,
    headers: { "content-type": strategic ? "application/strategic-merge-patch+json" : "application/merge-patch+json" },
  })) as ApiObject;
  return withKind(answer, resource);
}
