import type { ApiObject } from "#kinds";
import { ALL_NAMESPACES, type CommandSpec, type Context, FILENAME, flag, RECURSIVE, SELECTOR } from "../context.ts";
import { describeObject } from "../describe/describe.ts";
import { CommandError } from "../errors.ts";
import { type Asked, askedFor } from "../resource-args.ts";
import { throwAll, withKind } from "./apply.ts";
import { selectors } from "./get.ts";

export const describe: CommandSpec = {
  name: "describe",
  usage: "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME)",
  short: "Show details of a specific resource or group of resources",
  flags: [
    FILENAME,
    RECURSIVE,
    SELECTOR,
    ALL_NAMESPACES,
    flag("show-events", "bool", "events too", { default: true }),
    flag("chunk-size", "int", "objects a page", { default: 500 }),
  ],
  async run(context) {
    const { flags, args } = context;
    if (args.length === 0 && flags.list("filename").length === 0) {
      throw new CommandError(
        'You must specify the type of resource to describe. Use "kubectl api-resources" for a complete list of supported resources.',
      );
    }
    const errors: unknown[] = [];
    const texts: string[] = [];
    for (const one of await askedFor(context, args, { allowAll: true })) {
      try {
        for (const object of await objectsOf(context, one))
          texts.push(
            await describeObject(context, one.resource, withKind(object, one.resource), {
              events: flags.bool("show-events"),
            }),
          );
      } catch (error) {
        errors.push(error);
      }
    }
    context.out(texts.join("\n\n"));
    if (texts.length === 0 && errors.length === 0)
      context.err(
        flags.bool("all-namespaces")
          ? "No resources found\n"
          : `No resources found in ${context.namespace} namespace.\n`,
      );
    throwAll(errors);
  },
};

/** The object, or those whose names begin so. */
async function objectsOf(
  { client, flags }: Context,
  { resource, name, namespace }: Asked,
): Promise<readonly ApiObject[]> {
  if (name === undefined)
    return (await client.list(resource, { namespace, ...selectors(flags) })).items as readonly ApiObject[];
  try {
    return [(await client.get(resource, name, { namespace })) as ApiObject];
  } catch (error) {
    const { items } = await client.list(resource, { namespace });
    const found = (items as readonly ApiObject[]).filter(({ metadata }) => metadata.name.startsWith(name));
    if (found.length > 0) return found;
    throw error;
  }
}
