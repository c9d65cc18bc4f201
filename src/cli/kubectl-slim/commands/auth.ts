import type { DeepReadonly } from "#base";
import { type PolicyRule, resources } from "#kinds";
import { ALL_NAMESPACES, type CommandSpec, type Context, flag, OUTPUT } from "../context.ts";
import { rowsOf } from "../describe/rbac.ts";
import { CommandError, SilentExit } from "../errors.ts";
import { printerOf } from "../printers/objects.ts";
import { alignTabs, LIST_TABS } from "../printers/tab-writer.ts";

export const auth: CommandSpec = {
  name: "auth",
  usage: "auth SUBCOMMAND",
  short: "Inspect authorization",
  subcommands: [
    {
      name: "can-i",
      usage: "auth can-i VERB [TYPE | TYPE/NAME | NONRESOURCEURL]",
      short: "Check whether an action is allowed",
      flags: [
        ALL_NAMESPACES,
        flag("list", "bool", "all that is allowed"),
        flag("quiet", "bool", "the exit code only", { short: "q" }),
        flag("subresource", "string", "of the resource"),
        flag("no-headers", "bool", "no line of headers"),
      ],
      run: canI,
    },
    {
      name: "whoami",
      usage: "auth whoami",
      short: "Experimental: Check self subject attributes",
      flags: [OUTPUT],
      run: whoAmI,
    },
  ],
};

async function canI(context: Context): Promise<void> {
  const { flags, args, client, namespace, out } = context;
  if (flags.bool("list")) return listRules(context);
  const [verb, what] = args;
  if (!verb || (args.length !== 2 && args.length !== 3))
    throw new CommandError(
      "you must specify two arguments: verb resource or verb resource/resourceName.\nSee 'kubectl auth can-i -h' for help and examples.",
    );
  const where = flags.bool("all-namespaces") ? "" : namespace;
  const attributes = what!.startsWith("/")
    ? { nonResourceAttributes: { verb, path: what! } }
    : { resourceAttributes: await attributesOf(context, verb, what!, args[2], where) };
  const answer = (await client.create(resources.selfSubjectAccessReviews, {
    metadata: {},
    spec: attributes,
  } as never)) as { status?: { allowed?: boolean; reason?: string; evaluationError?: string } };
  const { allowed = false, reason, evaluationError } = answer.status ?? {};
  if (!flags.bool("quiet")) {
    const notes = `${reason ? ` - ${reason}` : ""}${evaluationError ? ` - ${evaluationError}` : ""}`;
    out(allowed ? "yes\n" : `no${notes}\n`);
  }
  if (!allowed) throw new SilentExit(1);
}

async function attributesOf(
  { discovery, flags, err }: Context,
  verb: string,
  what: string,
  third: string | undefined,
  namespace: string,
) {
  const [word = "", slashName] = what.split("/", 2);
  const name = slashName ?? third;
  const served = await discovery.named(word).catch(() => undefined);
  if (!served && word !== "*") err(`Warning: the server doesn't have a resource type '${word}'\n\n`);
  else if (served && !served.namespaced)
    err(
      `Warning: resource '${served.resource}' is not namespace scoped${served.group ? ` in group '${served.group}'` : ""}\n\n`,
    );
  return {
    verb,
    group: served?.group ?? (word.includes(".") ? word.slice(word.indexOf(".") + 1) : word === "*" ? "*" : ""),
    resource: served?.resource ?? word.split(".")[0]!,
    ...(namespace && served?.namespaced !== false ? { namespace } : namespace ? { namespace } : {}),
    ...(name ? { name } : {}),
    ...(flags.string("subresource") ? { subresource: flags.string("subresource") } : {}),
  };
}

interface Rules {
  readonly resourceRules?: readonly DeepReadonly<PolicyRule>[];
  readonly nonResourceRules?: readonly DeepReadonly<PolicyRule>[];
}

async function listRules({ client, flags, namespace, out }: Context): Promise<void> {
  const { status } = (await client.create(resources.selfSubjectRulesReviews, {
    metadata: {},
    spec: { namespace },
  } as never)) as { status?: Rules };
  const lines = flags.bool("no-headers") ? [] : ["Resources\tNon-Resource URLs\tResource Names\tVerbs"];
  const rules = [...(status?.resourceRules ?? []), ...(status?.nonResourceRules ?? [])];
  for (const { resource, urls, names, verbs } of rowsOf(rules))
    lines.push(`${resource}\t[${urls.join(" ")}]\t[${names.join(" ")}]\t[${verbs.join(" ")}]`);
  out(alignTabs(`${lines.join("\n")}\n`, LIST_TABS));
}

async function whoAmI(context: Context): Promise<void> {
  const answer = (await context.client.create(resources.selfSubjectReviews, { metadata: {} } as never)) as {
    status?: {
      userInfo?: {
        username?: string;
        uid?: string;
        groups?: readonly string[];
        extra?: Readonly<Record<string, readonly string[]>>;
      };
    };
  };
  const printer = printerOf(context);
  if (printer) return context.out(printer(answer as never));
  const { username, uid, groups, extra } = answer.status?.userInfo ?? {};
  const lines = ["ATTRIBUTE\tVALUE"];
  if (username) lines.push(`Username\t${username}`);
  if (uid) lines.push(`UID\t${uid}`);
  if (groups?.length) lines.push(`Groups\t[${groups.join(" ")}]`);
  for (const key of Object.keys(extra ?? {}).sort()) lines.push(`Extra: ${key}\t[${extra![key]!.join(" ")}]`);
  context.out(alignTabs(`${lines.join("\n")}\n`, LIST_TABS));
}
