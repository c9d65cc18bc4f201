import {
  createClient,
  createDiscovery,
  createHttpTransport,
  createPodStreams,
  type HttpTransportOptions,
  trusted,
} from "#client";
import { findTarget, type Target } from "./connection.ts";
import { type CommandSpec, type Context, flag } from "./context.ts";
import { commands } from "./commands/mod.ts";
import type { Environment } from "./environment.ts";
import { CommandError, describeError } from "./errors.ts";
import { type Flags, type FlagSpec, type ParsedLine, parseFlags } from "./flags.ts";
import { helpOf, overview } from "./help.ts";

/** Flags that every command takes. */
export const GLOBAL_FLAGS: readonly FlagSpec[] = [
  flag("kubeconfig", "string", "path of the kubeconfig"),
  flag("context", "string", "context of the kubeconfig"),
  flag("cluster", "string", "cluster of the kubeconfig"),
  flag("user", "string", "user of the kubeconfig"),
  flag("namespace", "string", "namespace of the request", { short: "n" }),
  flag("server", "string", "address of the API server", { short: "s" }),
  flag("token", "string", "bearer token"),
  flag("as", "string", "user to impersonate"),
  flag("as-group", "array", "group to impersonate"),
  flag("as-uid", "string", "UID to impersonate"),
  flag("certificate-authority", "string", "file of the certificate authority"),
  flag("client-certificate", "string", "file of the client certificate"),
  flag("client-key", "string", "file of the client's key"),
  flag("insecure-skip-tls-verify", "bool", "trust any server"),
  flag("tls-server-name", "string", "name in the server's certificate"),
  flag("request-timeout", "string", "time for one request", { default: "0" }),
  flag("cache-dir", "string", "taken and ignored: nothing is cached"),
  flag("v", "int", "taken and ignored", { short: "v" }),
  flag("match-server-version", "bool", "taken and ignored"),
  flag("disable-compression", "bool", "taken and ignored"),
  flag("warnings-as-errors", "bool", "warnings of the server end with exit code 1"),
  flag("help", "bool", "help for the command", { short: "h" }),
];

/** Runs one command line. Resolves to the exit code. */
export async function runKubectl(words: readonly string[], environment: Environment): Promise<number> {
  let command = "kubectl";
  const warnings = { count: 0 };
  try {
    const found = findCommand(words);
    command = found.command;
    const line = parseFlags(found.rest, [...(found.spec?.flags ?? []), ...GLOBAL_FLAGS]);
    if (!found.spec) return unknownCommand(line, environment);
    if (line.flags.bool("help") || !found.spec.run) return showHelp(found.spec, found.command, line, environment);
    await run(found.spec, found.command, line, environment, warnings);
    if (warnings.count > 0 && line.flags.bool("warnings-as-errors"))
      throw new CommandError(`${warnings.count} warning${warnings.count > 1 ? "s" : ""} received`);
    return 0;
  } catch (error) {
    const { text, exitCode } = describeError(error, command);
    if (text) environment.stderr.write(`${text}\n`);
    return exitCode;
  }
}

interface Found {
  readonly spec: CommandSpec | undefined;
  readonly command: string;
  readonly rest: readonly string[];
}

/** The command is the first word that is no flag; global flags may stand before it. */
function findCommand(words: readonly string[]): Found {
  let specs: readonly CommandSpec[] | undefined = commands;
  let spec: CommandSpec | undefined;
  let command = "kubectl";
  const rest: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    if (word === "--") {
      rest.push(...words.slice(i));
      break;
    }
    const next: CommandSpec | undefined = word.startsWith("-")
      ? undefined
      : specs?.find(({ name, aliases = [] }) => name === word || aliases.includes(word));
    if (next) {
      spec = next;
      specs = next.subcommands;
      command += ` ${next.name}`;
      continue;
    }
    rest.push(word);
    if (!word.startsWith("-")) specs = undefined;
    // the value of a flag is no command
    if (specs && takesNext(word, spec)) rest.push(...words.slice(++i, i + 1));
  }
  return { spec, command, rest };
}

function takesNext(word: string, spec: CommandSpec | undefined): boolean {
  if (word.includes("=")) return false;
  const all = [...(spec?.flags ?? []), ...GLOBAL_FLAGS];
  const found = word.startsWith("--")
    ? all.find(({ name }) => name === word.slice(2))
    : all.find(({ short }) => word.length === 2 && short === word[1]);
  return found !== undefined && found.type !== "bool" && found.bare === undefined;
}

function unknownCommand({ args }: ParsedLine, environment: Environment): number {
  const [word] = args;
  if (word === undefined) {
    environment.stdout.write(overview());
    return 0;
  }
  environment.stderr.write(`error: unknown command ${JSON.stringify(word)} for "kubectl"\n`);
  return 1;
}

function showHelp(spec: CommandSpec, command: string, { args, flags }: ParsedLine, environment: Environment): number {
  const [word] = args;
  if (word !== undefined && !flags.bool("help"))
    throw new CommandError(
      `unknown command ${JSON.stringify(args.join(" "))}\nSee '${command} -h' for help and examples`,
    );
  environment.stdout.write(helpOf(spec, command));
  return 0;
}

async function run(
  spec: CommandSpec,
  command: string,
  line: ParsedLine,
  environment: Environment,
  warnings: { count: number },
): Promise<void> {
  const out = (text: string) => void environment.stdout.write(text);
  const err = (text: string) => void environment.stderr.write(text);
  const base = { environment, flags: line.flags, args: line.args, dash: line.dash, command, out, err };
  if (spec.offline) return spec.run?.(base as Context);
  const target = findTarget(line.flags, environment);
  const transport = createHttpTransport({
    ...(await transportOptions(target)),
    headers: impersonation(line.flags),
    onWarning(text) {
      warnings.count++;
      err(`Warning: ${text}\n`);
    },
  });
  const client = createClient(transport, { userAgent: "kubectl" });
  try {
    await spec.run?.({
      ...base,
      transport,
      client,
      discovery: createDiscovery(client),
      streams: createPodStreams(transport, { userAgent: "kubectl" }),
      namespace: target.namespace,
      namespaceGiven: line.flags.given("namespace"),
      server: target.server,
    });
  } finally {
    transport.close();
  }
}

async function transportOptions(target: Target): Promise<HttpTransportOptions> {
  const { namespace: _namespace, ...rest } = target;
  return trusted(rest);
}

function impersonation(flags: Flags): Record<string, string | string[]> {
  return {
    ...(flags.string("as") ? { "impersonate-user": flags.string("as") } : {}),
    ...(flags.string("as-uid") ? { "impersonate-uid": flags.string("as-uid") } : {}),
    ...(flags.list("as-group").length > 0 ? { "impersonate-group": [...flags.list("as-group")] } : {}),
  };
}
