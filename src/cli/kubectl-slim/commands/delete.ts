import { type ApiObject, isStatus } from "#kinds";
import {
  ALL_NAMESPACES,
  type CommandSpec,
  type Context,
  DRY_RUN,
  FIELD_SELECTOR,
  FILENAME,
  flag,
  OUTPUT,
  RECURSIVE,
  SELECTOR,
} from "../context.ts";
import { CommandError } from "../errors.ts";
import { durationMs } from "../flags.ts";
import { type Asked, askedFor, shortName } from "../resource-args.ts";
import { throwAll } from "./apply.ts";
import { selectors } from "./get.ts";

export const remove: CommandSpec = {
  name: "delete",
  usage: "delete ([-f FILENAME] | TYPE [(NAME | -l label | --all)])",
  short: "Delete resources by file names, stdin, resources and names, or by resources and label selector",
  flags: [
    FILENAME,
    RECURSIVE,
    SELECTOR,
    FIELD_SELECTOR,
    ALL_NAMESPACES,
    OUTPUT,
    DRY_RUN,
    flag("all", "bool", "all of the kind"),
    flag("cascade", "string", "background, orphan or foreground", { default: "background", bare: "background" }),
    flag("force", "bool", "remove from the API at once"),
    flag("grace-period", "int", "seconds until it is killed", { default: -1 }),
    flag("ignore-not-found", "bool", "what is not there is no error"),
    flag("now", "bool", "a grace period of one second"),
    flag("timeout", "duration", "how long to wait until it is gone"),
    flag("wait", "bool", "wait until it is gone", { default: true }),
    flag("interactive", "bool", "ask before", { short: "i" }),
    flag("raw", "string", "a path of the server"),
  ],
  async run(context) {
    const { flags, args } = context;
    const asked = await askedFor(context, args);
    const targets = (await Promise.all(asked.map((one) => expand(context, one)))).flat();
    const quiet = flags.bool("ignore-not-found") || flags.bool("all") || flags.string("selector") !== "";
    if (flags.bool("force") && graceOf(context) === 0)
      context.err(
        "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.\n",
      );
    const errors: unknown[] = [];
    const deleted: Deleted[] = [];
    for (const target of targets) {
      try {
        deleted.push(await deleteOne(context, target));
      } catch (error) {
        if (!(isStatus(error, "NotFound") && quiet)) errors.push(error);
      }
    }
    if (targets.length === 0) context.out("No resources found\n");
    const dry = flags.string("dry-run") !== "none";
    if (flags.bool("wait") && !dry) await waitGone(context, deleted);
    throwAll(errors);
  },
};

interface Target extends Asked {
  readonly name: string;
}
interface Deleted extends Target {
  readonly uid: string | undefined;
}

/** Names of what a selector, or `--all`, takes. */
async function expand(context: Context, one: Asked): Promise<Target[]> {
  if (one.name !== undefined) return [{ ...one, name: one.name }];
  const { items } = await context.client.list(one.resource, { namespace: one.namespace, ...selectors(context.flags) });
  return items.map(({ metadata }) => ({ ...one, name: metadata.name, namespace: metadata.namespace }));
}

function graceOf({ flags }: Context): number | undefined {
  if (flags.bool("now")) return 1;
  const given = flags.int("grace-period");
  if (given >= 0) {
    // zero is for those who force it: a pod that is gone from the API may still run
    return given === 0 && !flags.bool("force") ? 1 : given;
  }
  return flags.bool("force") ? 0 : undefined;
}

const PROPAGATION = {
  background: "Background",
  foreground: "Foreground",
  orphan: "Orphan",
  true: "Background",
  false: "Orphan",
} as const;

async function deleteOne(context: Context, target: Target): Promise<Deleted> {
  const { client, flags, out } = context;
  const grace = graceOf(context);
  const cascade = PROPAGATION[flags.string("cascade") as keyof typeof PROPAGATION];
  if (!cascade)
    throw new CommandError(
      `invalid cascade value (${flags.string("cascade")}). Must be "background", "foreground", or "orphan"`,
    );
  const dryRun = flags.string("dry-run");
  let uid: string | undefined;
  if (dryRun === "client" || dryRun === "unchanged")
    await client.get(target.resource, target.name, { namespace: target.namespace });
  else {
    const answer = (await client.delete(target.resource, target.name, {
      namespace: target.namespace,
      propagationPolicy: cascade,
      ...(grace === undefined ? {} : { gracePeriodSeconds: grace }),
    })) as (ApiObject & { details?: { uid?: string } }) | undefined;
    uid = answer?.details?.uid ?? answer?.metadata?.uid;
  }
  const suffix = dryRun === "none" ? "" : dryRun === "server" ? " (server dry run)" : " (dry run)";
  if (flags.string("output") === "name") out(`${shortName(target.resource, target.name)}\n`);
  else {
    const how = grace === 0 ? "force deleted" : "deleted";
    const kind = shortName(target.resource, "").slice(0, -1);
    const where = target.namespace ? ` from ${target.namespace} namespace` : "";
    out(`${kind} ${JSON.stringify(target.name)} ${how}${where}${suffix}\n`);
  }
  return { ...target, uid };
}

/** Until the objects are gone, or others have their names. */
async function waitGone({ client, flags }: Context, deleted: readonly Deleted[]): Promise<void> {
  const timeout = durationMs(flags.string("timeout")) || 7 * 24 * 3600_000;
  const end = performance.now() + timeout;
  for (const { resource, name, namespace, uid } of deleted) {
    for (;;) {
      const there = await client.get(resource, name, { namespace }).catch((error: unknown) => {
        if (isStatus(error, "NotFound")) return undefined;
        throw error;
      });
      if (!there || (uid && there.metadata.uid !== uid)) break;
      if (performance.now() > end)
        throw new CommandError(
          `timed out waiting for the condition on ${resource.group ? `${resource.resource}.${resource.group}` : resource.resource}/${name}`,
        );
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
