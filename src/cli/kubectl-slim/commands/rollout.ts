import { pathOf } from "#client";
import { type ApiObject, type ControllerRevision, isControlledBy, type Resource, resources } from "#kinds";
import { type CommandSpec, type Context, FILENAME, flag, OUTPUT, RECURSIVE, SELECTOR, TEMPLATE } from "../context.ts";
import { CommandError } from "../errors.ts";
import { durationMs } from "../flags.ts";
import { templateText } from "../describe/pod-template.ts";
import { alignTabs, DESCRIBE_TABS } from "../printers/tab-writer.ts";
import { printResult } from "../printers/objects.ts";
import { type Asked, askedFor, shortName } from "../resource-args.ts";
import { rolloutState } from "../rollout-state.ts";
import { statesOf } from "../wait-until.ts";
import { withKind } from "./apply.ts";

const COMMON = [FILENAME, RECURSIVE, SELECTOR, OUTPUT, TEMPLATE];
const REVISION = "deployment.kubernetes.io/revision";
const CHANGE_CAUSE = "kubernetes.io/change-cause";

const sub = (
  name: string,
  short: string,
  run: (context: Context, target: Asked & { name: string }) => Promise<void>,
  flags: CommandSpec["flags"] = [],
): CommandSpec => ({
  name,
  usage: `rollout ${name} (TYPE NAME | TYPE/NAME) [flags]`,
  short,
  flags: [...COMMON, ...flags],
  async run(context) {
    if (context.args.length === 0 && context.flags.list("filename").length === 0)
      throw new CommandError("required resource not specified");
    for (const one of await askedFor(context, context.args)) {
      if (one.name !== undefined) {
        await run(context, { ...one, name: one.name });
        continue;
      }
      const { items } = await context.client.list(one.resource, {
        namespace: one.namespace,
        labelSelector: context.flags.string("selector"),
      });
      for (const { metadata } of items) await run(context, { ...one, name: metadata.name });
    }
  },
});

export const rollout: CommandSpec = {
  name: "rollout",
  usage: "rollout SUBCOMMAND",
  short: "Manage the rollout of one or many resources",
  subcommands: [
    sub("status", "Show the status of the rollout", status, [
      flag("watch", "bool", "until it is done", { short: "w", default: true }),
      flag("timeout", "duration", "how long; 0 for ever"),
      flag("revision", "int", "of this revision"),
    ]),
    sub("history", "View rollout history", history, [flag("revision", "int", "this one in full")]),
    sub("restart", "Restart a resource", restart, [
      flag("field-manager", "string", "owner of the fields", { default: "kubectl-rollout" }),
    ]),
    sub("pause", "Mark the provided resource as paused", (context, target) => setPaused(context, target, true)),
    sub("resume", "Resume a paused resource", (context, target) => setPaused(context, target, false)),
    sub("undo", "Undo a previous rollout", undo, [
      flag("to-revision", "int", "this one; 0: the one before"),
      flag("dry-run", "string", "none, client or server", { default: "none", bare: "unchanged" }),
    ]),
  ],
};

async function status(context: Context, { resource, name, namespace }: Asked & { name: string }): Promise<void> {
  const { flags, client } = context;
  await client.get(resource, name, { namespace });
  const timeout = durationMs(flags.string("timeout")) || 2 ** 31 - 1;
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), timeout);
  let last = "";
  try {
    for await (const object of statesOf(context, resource, name, namespace, abort.signal)) {
      if (!object) throw new CommandError("object has been deleted");
      const { text, done } = rolloutState(withKind(object, resource), flags.int("revision"));
      if (text !== last) context.out(text);
      last = text;
      if (done || !flags.bool("watch")) return;
    }
  } finally {
    clearTimeout(timer);
  }
  throw new CommandError("timed out waiting for the condition");
}

function patchTarget(
  { client, flags }: Context,
  { resource, name, namespace }: Asked & { name: string },
  body: unknown,
  type = "application/strategic-merge-patch+json",
): Promise<ApiObject> {
  return client
    .request({
      method: "PATCH",
      path: pathOf(resource, { namespace, name }),
      query: { fieldManager: flags.has("field-manager") ? flags.string("field-manager") : "kubectl-rollout" },
      body,
      headers: { "content-type": type },
    })
    .then((answer) => withKind(answer as ApiObject, resource));
}

async function restart(context: Context, target: Asked & { name: string }): Promise<void> {
  const object = (await context.client.get(target.resource, target.name, { namespace: target.namespace })) as ApiObject;
  if (!["Deployment", "DaemonSet", "StatefulSet"].includes(target.resource.kind))
    throw new CommandError(`${plural(target.resource)} ${JSON.stringify(target.name)} restarting is not supported`);
  if ((object.spec as { paused?: boolean }).paused)
    throw new CommandError(
      `${plural(target.resource)} ${JSON.stringify(target.name)} can't restart paused deployment (run rollout resume first)`,
    );
  const restartedAt = `${new Date(context.environment.now()).toISOString().slice(0, 19)}Z`;
  const after = await patchTarget(context, target, {
    spec: { template: { metadata: { annotations: { "kubectl.kubernetes.io/restartedAt": restartedAt } } } },
  });
  printResult(context, after, "restarted");
}

async function setPaused(context: Context, target: Asked & { name: string }, paused: boolean): Promise<void> {
  if (target.resource.kind !== "Deployment")
    throw new CommandError(
      `${plural(target.resource)} ${JSON.stringify(target.name)} ${paused ? "pausing" : "resuming"} is not supported`,
    );
  const object = (await context.client.get(target.resource, target.name, { namespace: target.namespace })) as ApiObject;
  if (((object.spec as { paused?: boolean }).paused ?? false) === paused)
    throw new CommandError(
      `${plural(target.resource)} ${JSON.stringify(target.name)} ${paused ? "is already paused" : "is not paused"}`,
    );
  printResult(
    context,
    await patchTarget(context, target, { spec: { paused: paused ? true : null } }),
    paused ? "paused" : "resumed",
  );
}

const plural = ({ resource, group }: Resource) => (group ? `${resource}.${group}` : resource);

interface Revision {
  readonly number: number;
  readonly cause: string;
  readonly template: ApiObject;
  /** Patch that goes back to it, for kinds that keep ControllerRevisions. */
  readonly data?: unknown;
}

async function revisionsOf(
  { client }: Context,
  { resource, name, namespace }: Asked & { name: string },
): Promise<Revision[]> {
  const object = (await client.get(resource, name, { namespace })) as ApiObject;
  const uid = object.metadata.uid ?? "";
  const causeOf = (item: { metadata: { annotations?: Readonly<Record<string, string>> } }) =>
    item.metadata.annotations?.[CHANGE_CAUSE] || "<none>";
  if (resource.kind === "Deployment") {
    const { items } = await client.list(resources.replicaSets, { namespace });
    return items
      .filter((item) => isControlledBy(item as never, { metadata: { uid } } as never))
      .map((item) => ({
        number: Number(item.metadata.annotations?.[REVISION] ?? 0),
        cause: causeOf(item),
        template: item.spec?.template as unknown as ApiObject,
      }))
      .sort((a, b) => a.number - b.number);
  }
  const { items } = await client.list(resources.controllerRevisions, { namespace });
  return (items as readonly ControllerRevision[])
    .filter((item) => isControlledBy(item as never, { metadata: { uid } } as never))
    .map((item) => ({
      number: Number(item.revision),
      cause: causeOf(item),
      template: (item.data as { spec?: { template?: ApiObject } } | undefined)?.spec?.template as ApiObject,
      data: item.data,
    }))
    .sort((a, b) => a.number - b.number);
}

async function history(context: Context, target: Asked & { name: string }): Promise<void> {
  const { flags } = context;
  const revisions = await revisionsOf(context, target);
  const name = shortName(target.resource, target.name);
  const wanted = flags.int("revision");
  if (wanted > 0) {
    const found = revisions.find(({ number }) => number === wanted);
    if (!found) throw new CommandError(`unable to find the specified revision`);
    // this one kubectl does not align
    const text = templateText(found.template, found.cause === "<none>" ? undefined : found.cause);
    return context.out(`${name} with revision #${wanted}
Pod Template:
${text}
`);
  }
  const lines = ["REVISION\tCHANGE-CAUSE", ...revisions.map(({ number, cause }) => `${number}\t${cause}`)];
  context.out(`${name} \n${alignTabs(`${lines.join("\n")}\n`, DESCRIBE_TABS)}\n`);
}

async function undo(context: Context, target: Asked & { name: string }): Promise<void> {
  const { flags, client } = context;
  const object = (await client.get(target.resource, target.name, { namespace: target.namespace })) as ApiObject;
  if ((object.spec as { paused?: boolean }).paused)
    throw new CommandError(
      `you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and try again`,
    );
  const revisions = await revisionsOf(context, target);
  const wanted = flags.int("to-revision");
  const found = wanted > 0 ? revisions.find(({ number }) => number === wanted) : revisions.at(-2);
  if (!found)
    throw new CommandError(
      wanted > 0 ? `unable to find specified revision ${wanted} in history` : "no rollout history found",
    );
  if (flags.string("dry-run") !== "none") return printResult(context, withKind(object, target.resource), "rolled back");
  if (target.resource.kind === "Deployment") {
    const template = withoutHash(found.template);
    const now = withoutHash((object.spec as { template: ApiObject }).template);
    if (JSON.stringify(template) === JSON.stringify(now)) {
      return printResult(
        context,
        withKind(object, target.resource),
        `skipped rollback (current template already matches revision ${found.number})`,
      );
    }
    const after = await patchTarget(
      context,
      target,
      [{ op: "replace", path: "/spec/template", value: template }],
      "application/json-patch+json",
    );
    return printResult(context, after, "rolled back");
  }
  printResult(context, await patchTarget(context, target, found.data), "rolled back");
}

function withoutHash(template: ApiObject): ApiObject {
  const { "pod-template-hash": _hash, ...labels } = template.metadata?.labels ?? {};
  return { ...template, metadata: { ...template.metadata, labels } };
}
