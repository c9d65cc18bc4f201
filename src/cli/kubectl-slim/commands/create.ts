import { pathOf } from "#client";
import type { ApiObject } from "#kinds";
import {
  type CommandSpec,
  type Context,
  DRY_RUN,
  FIELD_MANAGER,
  FILENAME,
  flag,
  OUTPUT,
  RECURSIVE,
  SELECTOR,
  SHOW_MANAGED,
  TEMPLATE,
} from "../context.ts";
import { CommandError } from "../errors.ts";
import type { FlagSpec } from "../flags.ts";
import { printResult } from "../printers/objects.ts";
import { readObjects } from "../resource-args.ts";
import { dryRunQuery, throwAll, validation, withKind, withLastApplied } from "./apply.ts";
import * as generators from "../generators.ts";

const COMMON: readonly FlagSpec[] = [
  OUTPUT,
  DRY_RUN,
  TEMPLATE,
  SHOW_MANAGED,
  FIELD_MANAGER("kubectl-create"),
  flag("save-config", "bool", "keep the configuration in an annotation"),
  flag("validate", "string", "strict, warn or ignore", { default: "strict", bare: "strict" }),
];

/** One kind that is made from flags. */
function sub(
  name: string,
  short: string,
  usage: string,
  flags: readonly FlagSpec[],
  make: (context: Context, name: string) => ApiObject,
  aliases: readonly string[] = [],
): CommandSpec {
  return {
    name,
    aliases,
    usage: `create ${usage}`,
    short,
    flags: [...COMMON, ...flags],
    async run(context) {
      const words = context.args.slice(0, context.dash ?? context.args.length);
      if (words.length !== 1)
        throw new CommandError(
          words.length === 0
            ? `exactly one NAME is required, got 0\nSee '${context.command} -h' for help and examples`
            : `exactly one NAME is required, got ${words.length}\nSee '${context.command} -h' for help and examples`,
        );
      await createOne(context, make(context, words[0]!));
    },
  };
}

export const create: CommandSpec = {
  name: "create",
  usage: "create -f FILENAME",
  short: "Create a resource from a file or from stdin",
  flags: [
    ...COMMON,
    FILENAME,
    RECURSIVE,
    SELECTOR,
    flag("edit", "bool", "edit before"),
    flag("raw", "string", "a path of the server"),
  ],
  async run(context) {
    const { flags, args } = context;
    if (args.length > 0)
      throw new CommandError(`Unexpected args: [${args.join(" ")}]
See 'kubectl create -h' for help and examples`);
    if (flags.list("filename").length === 0) throw new CommandError("must specify one of -f and -k");
    const errors: unknown[] = [];
    for (const { object, namespace } of await readObjects(context, flags.list("filename"))) {
      try {
        await createOne(context, object, namespace);
      } catch (error) {
        errors.push(error);
      }
    }
    throwAll(errors);
  },
  subcommands: [
    sub("namespace", "Create a namespace with the specified name", "namespace NAME", [], generators.namespace, ["ns"]),
    sub(
      "configmap",
      "Create a config map from a local file, directory or literal value",
      "configmap NAME [--from-file=[key=]source] [--from-literal=key1=value1]",
      generators.DATA_FLAGS,
      generators.configMap,
      ["cm"],
    ),
    {
      name: "secret",
      usage: "create secret (docker-registry | generic | tls)",
      short: "Create a secret using a specified subcommand",
      subcommands: [
        sub(
          "generic",
          "Create a secret from a local file, directory, or literal value",
          "secret generic NAME [--type=string] [--from-file=[key=]source] [--from-literal=key1=value1]",
          [...generators.DATA_FLAGS, flag("type", "string", "type of the secret")],
          generators.genericSecret,
        ),
        sub(
          "tls",
          "Create a TLS secret",
          "secret tls NAME --cert=path/to/cert/file --key=path/to/key/file",
          [flag("cert", "string", "file of the certificate"), flag("key", "string", "file of the key")],
          generators.tlsSecret,
        ),
        sub(
          "docker-registry",
          "Create a secret for use with a Docker registry",
          "secret docker-registry NAME --docker-username=user --docker-password=password",
          generators.REGISTRY_FLAGS,
          generators.registrySecret,
        ),
      ],
    },
    sub(
      "deployment",
      "Create a deployment with the specified name",
      "deployment NAME --image=image -- [COMMAND] [args...]",
      [
        flag("image", "list", "images"),
        flag("replicas", "int", "how many", { default: 1, short: "r" }),
        flag("port", "int", "port of the container", { default: -1 }),
      ],
      generators.deployment,
      ["deploy"],
    ),
    sub(
      "job",
      "Create a job with the specified name",
      "job NAME --image=image [--from=cronjob/name] -- [COMMAND] [args...]",
      [flag("image", "string", "image")],
      generators.job,
    ),
    sub(
      "cronjob",
      "Create a cron job with the specified name",
      "cronjob NAME --image=image --schedule='0/5 * * * ?' -- [COMMAND] [args...]",
      [
        flag("image", "string", "image"),
        flag("schedule", "string", "when"),
        flag("restart", "string", "OnFailure or Never", { default: "OnFailure" }),
      ],
      generators.cronJob,
      ["cj"],
    ),
    {
      name: "service",
      aliases: ["svc"],
      usage: "create service (clusterip | externalname | loadbalancer | nodeport)",
      short: "Create a service using a specified subcommand",
      subcommands: [
        sub(
          "clusterip",
          "Create a ClusterIP service",
          "service clusterip NAME [--tcp=<port>:<targetPort>]",
          [flag("tcp", "list", "port:targetPort"), flag("clusterip", "string", "the address, or None")],
          generators.serviceOf("ClusterIP"),
        ),
        sub(
          "nodeport",
          "Create a NodePort service",
          "service nodeport NAME [--tcp=port:targetPort]",
          [flag("tcp", "list", "port:targetPort"), flag("node-port", "int", "port of the nodes")],
          generators.serviceOf("NodePort"),
        ),
        sub(
          "loadbalancer",
          "Create a LoadBalancer service",
          "service loadbalancer NAME [--tcp=port:targetPort]",
          [flag("tcp", "list", "port:targetPort")],
          generators.serviceOf("LoadBalancer"),
        ),
        sub(
          "externalname",
          "Create an ExternalName service",
          "service externalname NAME --external-name external.name",
          [flag("external-name", "string", "name outside"), flag("tcp", "list", "port:targetPort")],
          generators.serviceOf("ExternalName"),
        ),
      ],
    },
    sub(
      "serviceaccount",
      "Create a service account with the specified name",
      "serviceaccount NAME",
      [],
      generators.serviceAccount,
      ["sa"],
    ),
    sub(
      "role",
      "Create a role with single rule",
      "role NAME --verb=verb --resource=resource.group/subresource",
      generators.RULE_FLAGS,
      generators.roleOf("Role"),
    ),
    sub(
      "clusterrole",
      "Create a cluster role",
      "clusterrole NAME --verb=verb --resource=resource.group",
      [...generators.RULE_FLAGS, flag("non-resource-url", "list", "paths")],
      generators.roleOf("ClusterRole"),
    ),
    sub(
      "rolebinding",
      "Create a role binding for a particular role or cluster role",
      "rolebinding NAME --clusterrole=NAME|--role=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname]",
      generators.BINDING_FLAGS,
      generators.bindingOf("RoleBinding"),
    ),
    sub(
      "clusterrolebinding",
      "Create a cluster role binding for a particular cluster role",
      "clusterrolebinding NAME --clusterrole=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname]",
      generators.BINDING_FLAGS,
      generators.bindingOf("ClusterRoleBinding"),
    ),
    sub(
      "quota",
      "Create a quota with the specified name",
      "quota NAME [--hard=key1=value1,key2=value2]",
      [flag("hard", "string", "limits")],
      generators.quota,
      ["resourcequota"],
    ),
    {
      name: "token",
      usage: "create token SERVICE_ACCOUNT_NAME",
      short: "Request a service account token",
      flags: [flag("duration", "duration", "how long it is good"), flag("audience", "array", "for whom")],
      run: createToken,
    },
  ],
};

async function createOne(context: Context, object: ApiObject, given?: string): Promise<void> {
  const { discovery, flags, client } = context;
  const resource = await discovery.ofKind(object.apiVersion, object.kind);
  const namespace = resource.namespaced ? (given ?? context.namespace) : undefined;
  const placed =
    namespace && (given || flags.string("dry-run") !== "client" || context.namespaceGiven)
      ? { ...object, metadata: { ...object.metadata, namespace } }
      : object;
  const body = flags.bool("save-config") ? withLastApplied(placed) : placed;
  const dryRun = flags.string("dry-run");
  if (dryRun === "client" || dryRun === "unchanged") return printResult(context, body, "created");
  const answer = (await client.request({
    method: "POST",
    path: pathOf(resource, { namespace }),
    query: { fieldManager: flags.string("field-manager"), fieldValidation: validation(flags), ...dryRunQuery(flags) },
    body,
  })) as ApiObject;
  printResult(context, withKind(answer, resource), "created");
}

async function createToken({ client, args, flags, namespace, out }: Context): Promise<void> {
  const [name, ...rest] = args;
  if (!name || rest.length > 0) throw new CommandError(`exactly one NAME is required, got ${args.length}`);
  const seconds = flags.given("duration")
    ? Math.round(
        (Number.parseFloat(flags.string("duration")) || 0) *
          ({ h: 3600, m: 60, s: 1 }[flags.string("duration").at(-1)!] ?? 1),
      )
    : undefined;
  const answer = (await client.request({
    method: "POST",
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    body: {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      metadata: {},
      spec: {
        ...(seconds ? { expirationSeconds: seconds } : {}),
        ...(flags.list("audience").length > 0 ? { audiences: flags.list("audience") } : {}),
      },
    },
  })) as { status: { token: string } };
  out(`${answer.status.token}\n`);
}
