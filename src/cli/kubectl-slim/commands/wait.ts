import { createJsonPath, type JsonPath, printValue } from "#base";
import { type ApiObject, isStatus, type Resource } from "#kinds";
import {
  ALL_NAMESPACES,
  type CommandSpec,
  type Context,
  FIELD_SELECTOR,
  FILENAME,
  flag,
  OUTPUT,
  RECURSIVE,
  SELECTOR,
  TEMPLATE,
} from "../context.ts";
import { CommandError } from "../errors.ts";
import { durationMs } from "../flags.ts";
import { printResult } from "../printers/objects.ts";
import { type Asked, askedFor } from "../resource-args.ts";
import { statesOf } from "../wait-until.ts";
import { throwAll, withKind } from "./apply.ts";
import { selectors } from "./get.ts";

export const wait: CommandSpec = {
  name: "wait",
  usage:
    "wait ([-f FILENAME] | resource.group/resource.name | resource.group [(-l label | --all)]) [--for=create|--for=delete|--for condition=available|--for=jsonpath='{}'[=value]]",
  short: "Wait for a specific condition on one or many resources",
  flags: [
    FILENAME,
    RECURSIVE,
    SELECTOR,
    FIELD_SELECTOR,
    ALL_NAMESPACES,
    OUTPUT,
    TEMPLATE,
    flag("for", "array", "create, delete, condition=NAME[=VALUE], jsonpath=PATH[=VALUE]"),
    flag("timeout", "duration", "0 looks once, negative waits for a week", { default: "30s" }),
    flag("all", "bool", "all of the kind"),
    flag("local", "bool", "not supported"),
  ],
  run: runWait,
};

async function isThere({ client }: Context, { resource, name = "", namespace }: Asked): Promise<boolean> {
  return client.get(resource, name, { namespace }).then(
    () => true,
    (error: unknown) => {
      if (isStatus(error, "NotFound")) return false;
      throw error;
    },
  );
}

type Test = (object: ApiObject | undefined) => boolean;

async function runWait(context: Context): Promise<void> {
  const { flags, args } = context;
  const [what] = flags.list("for");
  if (what === undefined) throw new CommandError('required flag(s) "for" not set');
  const test = testOf(what);
  const given = durationMs(flags.string("timeout")) ?? 30_000;
  const end = performance.now() + (given < 0 ? 7 * 24 * 3600_000 : given);
  const errors: unknown[] = [];
  let found = 0;
  const deleting = what.toLowerCase() === "delete";
  for (const target of await targetsOf(context, args, what)) {
    found++;
    // what is gone already is not worth a word
    if (deleting && !(await isThere(context, target))) continue;
    try {
      const object = await waitOne(context, target, test, what, end);
      printResult(
        context,
        withKind(object ?? ({ metadata: { name: target.name } } as ApiObject), target.resource),
        "condition met",
      );
    } catch (error) {
      errors.push(error);
    }
  }
  if (found === 0 && what !== "delete") throw new CommandError("no matching resources found");
  throwAll(errors);
}

async function targetsOf(
  context: Context,
  args: readonly string[],
  what: string,
): Promise<(Asked & { name: string })[]> {
  const targets: (Asked & { name: string })[] = [];
  for (const one of await askedFor(context, args)) {
    if (one.name !== undefined) {
      targets.push({ ...one, name: one.name });
      continue;
    }
    const { items } = await context.client.list(one.resource, {
      namespace: one.namespace,
      ...selectors(context.flags),
    });
    targets.push(...items.map(({ metadata }) => ({ ...one, name: metadata.name, namespace: metadata.namespace })));
  }
  // what is not there fails at once, but for those who wait for it to come or to go
  for (const { resource, name, namespace } of what === "create" || what === "delete" ? [] : targets)
    await context.client.get(resource, name, { namespace });
  return targets;
}

function testOf(what: string): Test {
  const lower = what.toLowerCase();
  if (lower === "delete") return (object) => object === undefined;
  if (lower === "create") return (object) => object !== undefined;
  if (lower.startsWith("condition=")) return conditionTest(what.slice("condition=".length));
  if (lower.startsWith("jsonpath=")) return jsonPathTest(what.slice("jsonpath=".length));
  throw new CommandError(`unrecognized condition: ${JSON.stringify(what)}`);
}

function conditionTest(text: string): Test {
  const [type = "", wanted = "true"] = text.split("=", 2);
  return (object) => {
    const status = (object?.status ?? {}) as {
      conditions?: { type: string; status: string; observedGeneration?: number }[];
      observedGeneration?: number;
    };
    const condition = status.conditions?.find((one) => one.type.toLowerCase() === type.toLowerCase());
    if (!condition) return false;
    const seen = condition.observedGeneration ?? status.observedGeneration;
    if (seen !== undefined && seen < (object?.metadata.generation ?? 0)) return false;
    return condition.status.toLowerCase() === wanted.toLowerCase();
  };
}

function jsonPathTest(text: string): Test {
  const match = /^(\{.*\}|[^=]+?)(?:=(.*))?$/s.exec(text);
  if (!match?.[1])
    throw new CommandError(
      "jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3 or --for=jsonpath='{.status.readyReplicas}'",
    );
  const path: JsonPath = createJsonPath(match[1], { relaxed: true });
  const wanted = match[2]?.replace(/^(["'])(.*)\1$/, "$2");
  return (object) => {
    if (!object) return false;
    const values = path.find(object).flat();
    if (wanted === undefined) return values.length > 0;
    return values.length === 1 && typeof values[0] !== "object" && printValue(values[0]) === wanted;
  };
}

async function waitOne(
  context: Context,
  { resource, name, namespace }: Asked & { name: string },
  test: Test,
  what: string,
  end: number,
): Promise<ApiObject | undefined> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), Math.min(Math.max(0, end - performance.now()), 2 ** 31 - 1));
  let last: ApiObject | undefined;
  try {
    for await (const object of statesOf(context, resource, name, namespace, abort.signal)) {
      if (test(object)) return object ?? last;
      last = object ?? last;
      if (object === undefined && what !== "create")
        throw new CommandError(`${pluralOf(resource)} ${JSON.stringify(name)} not found`);
      if (performance.now() >= end) break;
    }
  } catch (error) {
    if (!abort.signal.aborted || isStatus(error)) throw error;
  } finally {
    clearTimeout(timer);
  }
  throw new CommandError(`timed out waiting for the condition on ${pluralOf(resource)}/${name}`);
}

const pluralOf = ({ resource, group }: Resource) => (group ? `${resource}.${group}` : resource);
