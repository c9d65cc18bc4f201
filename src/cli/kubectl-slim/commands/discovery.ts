import type { ServedResource } from "#client";
import { type CommandSpec, flag, OUTPUT } from "../context.ts";
import { CommandError } from "../errors.ts";
import { alignTabs, LIST_TABS } from "../printers/tab-writer.ts";

export const apiResources: CommandSpec = {
  name: "api-resources",
  usage: "api-resources [flags]",
  short: "Print the supported API resources on the server",
  flags: [
    OUTPUT,
    flag("api-group", "string", "of this group"),
    flag("namespaced", "bool", "in namespaces, or not", { default: true }),
    flag("no-headers", "bool", "no line of headers"),
    flag("verbs", "list", "that have these verbs"),
    flag("categories", "list", "that are in these categories"),
    flag("sort-by", "string", "name or kind"),
    flag("cached", "bool", "taken and ignored"),
  ],
  async run({ discovery, flags, args, out }) {
    if (args.length > 0)
      throw new CommandError(
        `unexpected arguments: [${args.join(" ")}]\nSee 'kubectl api-resources -h' for help and examples`,
      );
    const output = flags.string("output");
    if (!["", "wide", "name"].includes(output)) throw new CommandError(`--output ${output} is not available`);
    const found = (await discovery.preferred())
      .filter(
        (one) =>
          one.verbs.length > 0 &&
          (!flags.given("api-group") || one.group === flags.string("api-group")) &&
          (!flags.given("namespaced") || one.namespaced === flags.bool("namespaced")) &&
          flags.list("verbs").every((verb) => one.verbs.includes(verb)) &&
          flags.list("categories").every((category) => one.categories.includes(category)),
      )
      .sort(orderOf(flags.string("sort-by")));
    if (output === "name")
      return out(found.map(({ resource, group }) => `${resource}${group ? `.${group}` : ""}\n`).join(""));
    const wide = output === "wide";
    const lines = flags.bool("no-headers")
      ? []
      : [`NAME\tSHORTNAMES\tAPIVERSION\tNAMESPACED\tKIND${wide ? "\tVERBS\tCATEGORIES" : ""}`];
    for (const one of found) {
      const version = one.group ? `${one.group}/${one.version}` : one.version;
      const more = wide ? `\t${[...one.verbs].join(",")}\t${one.categories.join(",")}` : "";
      lines.push(`${one.resource}\t${one.shortNames.join(",")}\t${version}\t${one.namespaced}\t${one.kind}${more}`);
    }
    out(alignTabs(`${lines.join("\n")}\n`, LIST_TABS));
  },
};

function orderOf(by: string): (a: ServedResource, b: ServedResource) => number {
  const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  if (by === "name") return (a, b) => compare(a.resource, b.resource);
  if (by === "kind") return (a, b) => compare(a.kind, b.kind);
  return (a, b) => compare(a.group, b.group) || compare(a.resource, b.resource);
}

export const apiVersions: CommandSpec = {
  name: "api-versions",
  usage: "api-versions",
  short: 'Print the supported API versions on the server, in the form of "group/version"',
  async run({ discovery, out }) {
    const versions = new Set(
      (await discovery.all()).map(({ group, version }) => (group ? `${group}/${version}` : version)),
    );
    out(
      [...versions]
        .sort()
        .map((version) => `${version}\n`)
        .join(""),
    );
  },
};

export const version: CommandSpec = {
  name: "version",
  usage: "version",
  short: "Print the client and server version information",
  flags: [flag("client", "bool", "the client only"), OUTPUT],
  async run({ client, flags, out }) {
    out("Client Version: v1.36.3+slim\n");
    if (flags.bool("client")) return;
    const { gitVersion } = (await client.request({ method: "GET", path: "/version" })) as { gitVersion: string };
    out(`Server Version: ${gitVersion}\n`);
  },
};
