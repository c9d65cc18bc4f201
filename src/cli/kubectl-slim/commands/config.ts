import { parse } from "yaml";
import type { Kubeconfig } from "#client";
import { kubeconfigPaths, loadKubeconfig } from "../connection.ts";
import { type CommandSpec, type Context, flag } from "../context.ts";
import { CommandError } from "../errors.ts";
import { alignTabs, LIST_TABS } from "../printers/tab-writer.ts";
import { toYaml } from "../printers/yaml.ts";

const sub = (
  name: string,
  usage: string,
  short: string,
  run: (context: Context) => void,
  flags: CommandSpec["flags"] = [],
): CommandSpec => ({
  name,
  usage: `config ${usage}`,
  short,
  flags,
  offline: true,
  run: async (context) => run(context),
});

const one = ({ args, command }: Context): string => {
  const [name, ...rest] = args;
  if (name === undefined || rest.length > 0)
    throw new CommandError(`unexpected args: [${args.join(" ")}]\nSee '${command} -h' for help and examples`, {
      bare: true,
    });
  return name;
};

export const config: CommandSpec = {
  name: "config",
  usage: "config SUBCOMMAND",
  short: "Modify kubeconfig files",
  subcommands: [
    sub("view", "view [flags]", "Display merged kubeconfig settings or a specified kubeconfig file", view, [
      flag("raw", "bool", "keys and tokens too"),
      flag("minify", "bool", "only what the current context uses"),
      flag("flatten", "bool", "files in the text itself"),
      flag("output", "string", "yaml or json", { short: "o", default: "yaml" }),
    ]),
    sub("current-context", "current-context", "Display the current-context", (context) => {
      const name = loadKubeconfig(context.flags, context.environment)["current-context"];
      if (!name) throw new CommandError("current-context is not set");
      context.out(`${name}\n`);
    }),
    sub("get-contexts", "get-contexts [(-o|--output=)name)]", "Describe one or many contexts", getContexts, [
      flag("output", "string", "name", { short: "o" }),
      flag("no-headers", "bool", "no line of headers"),
    ]),
    sub("get-clusters", "get-clusters", "Display clusters defined in the kubeconfig", (context) =>
      names(context, "clusters"),
    ),
    sub("get-users", "get-users", "Display users defined in the kubeconfig", (context) => names(context, "users")),
    sub("use-context", "use-context CONTEXT_NAME", "Set the current-context in a kubeconfig file", (context) => {
      const name = one(context);
      change(context, (file) => {
        if (!loadKubeconfig(context.flags, context.environment).contexts?.some((entry) => entry.name === name))
          throw new CommandError(`no context exists with the name: ${JSON.stringify(name)}`);
        file["current-context"] = name;
      });
      context.out(`Switched to context ${JSON.stringify(name)}.\n`);
    }),
    sub(
      "set-context",
      "set-context [NAME | --current] [--cluster=cluster_nickname] [--user=user_nickname] [--namespace=namespace]",
      "Set a context entry in kubeconfig",
      setContext,
      [flag("current", "bool", "the current one")],
    ),
    sub(
      "set-cluster",
      "set-cluster NAME [--server=server] [--certificate-authority=path/to/certificate/authority] [--insecure-skip-tls-verify=true]",
      "Set a cluster entry in kubeconfig",
      setCluster,
      [flag("embed-certs", "bool", "files in the text itself")],
    ),
    sub(
      "set-credentials",
      "set-credentials NAME [--client-certificate=path/to/certfile] [--client-key=path/to/keyfile] [--token=bearer_token]",
      "Set a user entry in kubeconfig",
      setCredentials,
      [flag("embed-certs", "bool", "files in the text itself")],
    ),
    sub(
      "rename-context",
      "rename-context CONTEXT_NAME NEW_NAME",
      "Rename a context from the kubeconfig file",
      renameContext,
    ),
    sub("delete-context", "delete-context NAME", "Delete the specified context from the kubeconfig", (context) =>
      removeEntry(context, "contexts", "context"),
    ),
    sub("delete-cluster", "delete-cluster NAME", "Delete the specified cluster from the kubeconfig", (context) =>
      removeEntry(context, "clusters", "cluster"),
    ),
    sub("delete-user", "delete-user NAME", "Delete the specified user from the kubeconfig", (context) =>
      removeEntry(context, "users", "user"),
    ),
    sub("unset", "unset PROPERTY_NAME", "Unset an individual value in a kubeconfig file", (context) => {
      const name = one(context);
      if (!["current-context", "contexts", "clusters", "users"].includes(name))
        throw new CommandError(`kubectl-slim unsets current-context, contexts, clusters and users only`);
      change(context, (file) => void delete (file as Record<string, unknown>)[name]);
      context.out(`Property ${JSON.stringify(name)} unset.\n`);
    }),
  ],
};

function view(context: Context): void {
  const { flags, environment, out } = context;
  const merged = loadKubeconfig(flags, environment);
  const shown = flags.bool("minify") ? minified(merged, flags.string("context")) : merged;
  const whole = {
    apiVersion: "v1",
    kind: "Config",
    preferences: {},
    "current-context": shown["current-context"] ?? "",
    clusters: shown.clusters ?? null,
    contexts: shown.contexts ?? null,
    users: shown.users ?? null,
  };
  const hidden = flags.bool("raw")
    ? whole
    : {
        ...whole,
        clusters: whole.clusters?.map(({ name, cluster }) => ({ name, cluster: redacted(cluster) })) ?? null,
        users: whole.users?.map(({ name, user }) => ({ name, user: redacted(user) })) ?? null,
      };
  const { preferences: _preferences, ...printed } = hidden;
  out(flags.string("output") === "json" ? `${JSON.stringify(inOrder(printed), null, 4)}\n` : toYaml(printed));
}

/** This one kubectl prints in the order of its own structures. */
const ORDER = [
  ...["kind", "apiVersion", "name", "clusters", "users", "contexts", "current-context"],
  ...["server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority", "certificate-authority-data"],
  ...["client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "tokenFile"],
  ...["cluster", "user", "namespace"],
];

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  const place = (key: string) => (ORDER.includes(key) ? ORDER.indexOf(key) : ORDER.length);
  const entries = Object.entries(value).sort(([a], [b]) => place(a) - place(b));
  return Object.fromEntries(entries.map(([key, inner]) => [key, inOrder(inner)]));
}

const SECRET: Readonly<Record<string, string>> = {
  "certificate-authority-data": "DATA+OMITTED",
  "client-certificate-data": "DATA+OMITTED",
  "client-key-data": "DATA+OMITTED",
  token: "REDACTED",
  password: "REDACTED",
};

const redacted = (entry: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(entry).map(([key, value]) => [key, SECRET[key] ?? value]));

function minified(merged: Kubeconfig, wanted: string): Kubeconfig {
  const name = wanted || merged["current-context"];
  const context = merged.contexts?.find((entry) => entry.name === name);
  if (!context) throw new CommandError("current-context must exist in order to minify");
  return {
    "current-context": context.name,
    contexts: [context],
    clusters: (merged.clusters ?? []).filter((entry) => entry.name === context.context.cluster),
    users: (merged.users ?? []).filter((entry) => entry.name === context.context.user),
  };
}

function getContexts(context: Context): void {
  const { flags, environment, args, out } = context;
  const merged = loadKubeconfig(flags, environment);
  const all = [...(merged.contexts ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1));
  const missing = args.find((name) => !all.some((entry) => entry.name === name));
  const shown = args.length > 0 ? all.filter(({ name }) => args.includes(name)) : all;
  if (flags.string("output") === "name") {
    out(shown.map(({ name }) => `${name}\n`).join(""));
    return;
  }
  const rows = shown.map(
    ({ name, context: { cluster, user, namespace = "" } }) =>
      `${name === merged["current-context"] ? "*" : ""}\t${name}\t${cluster}\t${user}\t${namespace}`,
  );
  out(
    alignTabs(
      `${[...(flags.bool("no-headers") ? [] : ["CURRENT\tNAME\tCLUSTER\tAUTHINFO\tNAMESPACE"]), ...rows].join("\n")}\n`,
      LIST_TABS,
    ),
  );
  if (missing !== undefined) throw new CommandError(`context ${missing} not found`);
}

function names({ flags, environment, out }: Context, key: "clusters" | "users"): void {
  const all = (loadKubeconfig(flags, environment)[key] ?? []).map(({ name }) => `${name}\n`).sort();
  out(["NAME\n", ...all].join(""));
}

/** Changes the file that is written to: the first of `KUBECONFIG` that is there, else the first. */
function change({ flags, environment }: Context, edit: (file: Kubeconfig) => void): void {
  const { paths } = kubeconfigPaths(flags, environment);
  const { files, path } = environment;
  const target = paths.find((name) => files.exists(name)) ?? paths[0]!;
  const file = (files.exists(target) ? (parse(files.read(target)) as Kubeconfig | null) : null) ?? {};
  edit(file);
  files.makeDirectory(path.dirname(target));
  files.write(
    target,
    toYaml({ apiVersion: "v1", kind: "Config", clusters: [], contexts: [], users: [], ...file }),
    0o600,
  );
}

type Key = "contexts" | "clusters" | "users";
const FIELD = { contexts: "context", clusters: "cluster", users: "user" } as const;

/** Sets fields of an entry, made when it is not there. True: it was there. */
function setEntry(file: Kubeconfig, key: Key, name: string, values: Record<string, unknown>): boolean {
  const entries = ((file as Record<string, unknown>)[key] ?? []) as { name: string; [field: string]: unknown }[];
  (file as Record<string, unknown>)[key] = entries;
  const found = entries.find((entry) => entry.name === name);
  const entry = found ?? { name, [FIELD[key]]: {} };
  if (!found) entries.push(entry);
  entry[FIELD[key]] = { ...(entry[FIELD[key]] as object), ...values };
  return found !== undefined;
}

const given = (context: Context, pairs: readonly (readonly [flag: string, field: string])[]) =>
  Object.fromEntries(
    pairs.flatMap(([name, field]) => (context.flags.given(name) ? [[field, context.flags.string(name)]] : [])),
  );

function setContext(context: Context): void {
  const current = context.flags.bool("current");
  const name = current ? (loadKubeconfig(context.flags, context.environment)["current-context"] ?? "") : one(context);
  if (!name) throw new CommandError("no current context is set");
  let there = false;
  change(context, (file) => {
    there = setEntry(
      file,
      "contexts",
      name,
      given(context, [
        ["cluster", "cluster"],
        ["user", "user"],
        ["namespace", "namespace"],
      ]),
    );
  });
  context.out(`Context ${JSON.stringify(name)} ${there ? "modified" : "created"}.\n`);
}

/** A file by its path, or its content. */
function fileField(context: Context, name: string): Record<string, string> {
  const path = context.flags.string(name);
  if (!path) return {};
  return context.flags.bool("embed-certs")
    ? { [`${name}-data`]: context.environment.files.readBytes(path).toString("base64") }
    : { [name]: context.environment.path.resolve(path) };
}

function setCluster(context: Context): void {
  const name = one(context);
  change(context, (file) => {
    setEntry(file, "clusters", name, {
      ...given(context, [
        ["server", "server"],
        ["tls-server-name", "tls-server-name"],
      ]),
      ...fileField(context, "certificate-authority"),
      ...(context.flags.given("insecure-skip-tls-verify")
        ? { "insecure-skip-tls-verify": context.flags.bool("insecure-skip-tls-verify") }
        : {}),
    });
  });
  context.out(`Cluster ${JSON.stringify(name)} set.\n`);
}

function setCredentials(context: Context): void {
  const name = one(context);
  change(context, (file) => {
    setEntry(file, "users", name, {
      ...given(context, [["token", "token"]]),
      ...fileField(context, "client-certificate"),
      ...fileField(context, "client-key"),
    });
  });
  context.out(`User ${JSON.stringify(name)} set.\n`);
}

function renameContext(context: Context): void {
  const [from, to] = context.args;
  if (!from || !to) throw new CommandError("unexpected args: []");
  change(context, (file) => {
    const entry = file.contexts?.find(({ name }) => name === from);
    if (!entry)
      throw new CommandError(
        `cannot rename the context ${JSON.stringify(from)}, it's not in ${kubeconfigPaths(context.flags, context.environment).paths[0]}`,
      );
    if (file.contexts?.some(({ name }) => name === to))
      throw new CommandError(
        `cannot rename the context ${JSON.stringify(from)}, the context ${JSON.stringify(to)} already exists in ${kubeconfigPaths(context.flags, context.environment).paths[0]}`,
      );
    entry.name = to;
    if (file["current-context"] === from) file["current-context"] = to;
  });
  context.out(`Context ${JSON.stringify(from)} renamed to ${JSON.stringify(to)}.\n`);
}

function removeEntry(context: Context, key: Key, what: string): void {
  const name = one(context);
  const [path] = kubeconfigPaths(context.flags, context.environment).paths;
  change(context, (file) => {
    const entries = ((file as Record<string, unknown>)[key] ?? []) as { name: string }[];
    const left = entries.filter((entry) => entry.name !== name);
    if (left.length === entries.length) throw new CommandError(`cannot delete ${what} ${name}, not in ${path}`);
    (file as Record<string, unknown>)[key] = left;
  });
  context.out(`deleted ${what} ${name} from ${path}\n`);
}
