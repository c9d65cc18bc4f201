import type { ApiObject } from "#kinds";
import { type Context, flag } from "./context.ts";
import { CommandError } from "./errors.ts";
import type { FlagSpec } from "./flags.ts";

/** Objects that `kubectl create KIND` makes of its flags. */
type Make = (context: Context, name: string) => ApiObject;

const object = (apiVersion: string, kind: string, name: string, rest: object = {}): ApiObject => ({
  apiVersion,
  kind,
  metadata: { name },
  ...rest,
});

export const namespace: Make = (_context, name) => object("v1", "Namespace", name, { spec: {}, status: {} });
export const serviceAccount: Make = (_context, name) => object("v1", "ServiceAccount", name);

export const DATA_FLAGS: readonly FlagSpec[] = [
  flag("from-literal", "array", "key=value"),
  flag("from-file", "array", "[key=]file, or a directory"),
  flag("from-env-file", "array", "file of key=value lines"),
  flag("append-hash", "bool", "taken and ignored"),
];

/** Keys and contents of the `--from-…` flags. @throws CommandError */
function dataOf({ flags, environment }: Context): Map<string, Buffer> {
  const data = new Map<string, Buffer>();
  const { files, path } = environment;
  const add = (key: string, value: Buffer) => {
    if (!/^[-._a-zA-Z0-9]+$/.test(key))
      throw new CommandError(
        `${JSON.stringify(key)} is not a valid key name: a valid config key must consist of alphanumeric characters, '-', '_' or '.'`,
      );
    if (data.has(key))
      throw new CommandError(`cannot add key ${JSON.stringify(key)}, another key by that name already exists`);
    data.set(key, value);
  };
  for (const literal of flags.list("from-literal")) {
    const at = literal.indexOf("=");
    if (at < 1) throw new CommandError(`invalid literal source ${literal}, expected key=value`);
    add(literal.slice(0, at), Buffer.from(literal.slice(at + 1).replace(/^(["'])(.*)\1$/s, "$2")));
  }
  for (const source of flags.list("from-file")) {
    const at = source.indexOf("=");
    const file = at < 0 ? source : source.slice(at + 1);
    if (!files.exists(file)) throw new CommandError(`error reading ${file}: no such file or directory`);
    if (!files.isDirectory(file)) add(at < 0 ? path.basename(file) : source.slice(0, at), files.readBytes(file));
    else
      for (const name of [...files.list(file)].sort())
        if (!files.isDirectory(path.join(file, name))) add(name, files.readBytes(path.join(file, name)));
  }
  for (const file of flags.list("from-env-file"))
    for (const line of files.read(file).split(/\r?\n/)) {
      const text = line.trimStart();
      if (text === "" || text.startsWith("#")) continue;
      const at = text.indexOf("=");
      add(at < 0 ? text : text.slice(0, at), Buffer.from(at < 0 ? (environment.env[text] ?? "") : text.slice(at + 1)));
    }
  return data;
}

const isText = (bytes: Buffer) => Buffer.from(bytes.toString("utf8")).equals(bytes);

export const configMap: Make = (context, name) => {
  const data: Record<string, string> = {};
  const binaryData: Record<string, string> = {};
  for (const [key, bytes] of dataOf(context)) {
    if (isText(bytes)) data[key] = bytes.toString("utf8");
    else binaryData[key] = bytes.toString("base64");
  }
  return object("v1", "ConfigMap", name, {
    ...(Object.keys(data).length > 0 ? { data } : {}),
    ...(Object.keys(binaryData).length > 0 ? { binaryData } : {}),
  });
};

const secretOf = (name: string, data: Iterable<readonly [string, Buffer]>, type?: string) => {
  const encoded = Object.fromEntries([...data].map(([key, bytes]) => [key, bytes.toString("base64")]));
  return object("v1", "Secret", name, {
    ...(Object.keys(encoded).length > 0 ? { data: encoded } : {}),
    ...(type ? { type } : {}),
  });
};

export const genericSecret: Make = (context, name) => secretOf(name, dataOf(context), context.flags.string("type"));

export const tlsSecret: Make = ({ flags, environment }, name) => {
  if (!flags.string("cert") || !flags.string("key")) throw new CommandError("key and cert must be specified");
  return secretOf(
    name,
    [
      ["tls.crt", environment.files.readBytes(flags.string("cert"))],
      ["tls.key", environment.files.readBytes(flags.string("key"))],
    ],
    "kubernetes.io/tls",
  );
};

export const REGISTRY_FLAGS: readonly FlagSpec[] = [
  flag("docker-server", "string", "the registry", { default: "https://index.docker.io/v1/" }),
  flag("docker-username", "string", "user"),
  flag("docker-password", "string", "password"),
  flag("docker-email", "string", "mail address"),
];

export const registrySecret: Make = ({ flags }, name) => {
  const [username, password, email] = ["docker-username", "docker-password", "docker-email"].map((one) =>
    flags.string(one),
  );
  if (!username || !password)
    throw new CommandError(
      "either --from-file or the combination of --docker-username, --docker-password and --docker-server is required",
    );
  const auth = Buffer.from(`${username}:${password}`).toString("base64");
  const config = {
    auths: { [flags.string("docker-server")]: { username, password, ...(email ? { email } : {}), auth } },
  };
  return secretOf(name, [[".dockerconfigjson", Buffer.from(JSON.stringify(config))]], "kubernetes.io/dockerconfigjson");
};

/** `busybox:1` → `busybox` */
const containerName = (image: string) =>
  image
    .replace(/^.*\//, "")
    .replace(/[@:].*$/, "")
    .replace(/[^a-zA-Z0-9-]/g, "-")
    .toLowerCase();

const commandOf = ({ args, dash }: Context) => (dash === undefined ? [] : args.slice(dash));

export const deployment: Make = (context, name) => {
  const { flags } = context;
  const images = flags.list("image");
  if (images.length === 0) throw new CommandError('required flag(s) "image" not set');
  const command = commandOf(context);
  if (images.length > 1 && command.length > 0)
    throw new CommandError("cannot specify multiple --image options and command");
  const labels = { app: name };
  const port = flags.int("port");
  const containers = images.map((image) => ({
    ...(command.length > 0 ? { command } : {}),
    image,
    name: containerName(image),
    ...(port > 0 ? { ports: [{ containerPort: port }] } : {}),
    resources: {},
  }));
  return {
    ...object("apps/v1", "Deployment", name, {
      spec: {
        replicas: flags.int("replicas"),
        selector: { matchLabels: labels },
        strategy: {},
        template: { metadata: { labels }, spec: { containers } },
      },
      status: {},
    }),
    metadata: { name, labels },
  };
};

export const job: Make = (context, name) => {
  const image = context.flags.string("image");
  if (!image) throw new CommandError("either --image or --from must be specified");
  return object("batch/v1", "Job", name, {
    spec: { template: jobTemplate(context, name, image, "Never") },
    status: {},
  });
};

function jobTemplate(context: Context, name: string, image: string, restartPolicy: string) {
  const command = commandOf(context);
  return {
    metadata: {},
    spec: { containers: [{ ...(command.length > 0 ? { command } : {}), image, name, resources: {} }], restartPolicy },
  };
}

export const cronJob: Make = (context, name) => {
  const { flags } = context;
  if (!flags.string("image") || !flags.string("schedule"))
    throw new CommandError(
      `required flag(s) ${["image", "schedule"]
        .filter((one) => !flags.string(one))
        .map((one) => JSON.stringify(one))
        .join(", ")} not set`,
    );
  const template = jobTemplate(context, name, flags.string("image"), flags.string("restart"));
  return object("batch/v1", "CronJob", name, {
    spec: { jobTemplate: { metadata: { name }, spec: { template } }, schedule: flags.string("schedule") },
    status: {},
  });
};

export const serviceOf =
  (type: "ClusterIP" | "NodePort" | "LoadBalancer" | "ExternalName"): Make =>
  ({ flags }, name) => {
    const ports = flags.list("tcp").map((text) => {
      const [port = "", target = port] = text.split(":", 2);
      if (!/^\d+$/.test(port)) throw new CommandError(`invalid port number: ${port}`);
      const nodePort = flags.has("node-port") ? flags.int("node-port") : 0;
      return {
        name: text.replace(":", "-"),
        ...(nodePort > 0 ? { nodePort } : {}),
        port: Number(port),
        protocol: "TCP",
        targetPort: /^\d+$/.test(target) ? Number(target) : target,
      };
    });
    const clusterIP = flags.has("clusterip") ? flags.string("clusterip") : "";
    if (ports.length === 0 && type !== "ExternalName" && clusterIP !== "None")
      throw new CommandError("at least one tcp port specifier must be provided");
    const externalName = flags.has("external-name") ? flags.string("external-name") : "";
    if (type === "ExternalName" && !externalName) throw new CommandError('required flag(s) "external-name" not set');
    const labels = { app: name };
    return {
      ...object("v1", "Service", name, {
        spec: {
          ...(clusterIP ? { clusterIP } : {}),
          ...(externalName ? { externalName } : {}),
          ...(ports.length > 0 ? { ports } : {}),
          selector: labels,
          type,
        },
        status: { loadBalancer: {} },
      }),
      metadata: { name, labels },
    };
  };

export const RULE_FLAGS: readonly FlagSpec[] = [
  flag("verb", "list", "what may be done"),
  flag("resource", "list", "with what"),
  flag("resource-name", "array", "with which"),
];

export const roleOf =
  (kind: "Role" | "ClusterRole"): Make =>
  ({ flags }, name) => {
    const verbs = [...flags.list("verb")];
    if (verbs.length === 0) throw new CommandError("at least one verb must be specified");
    const urls = flags.has("non-resource-url") ? flags.list("non-resource-url") : [];
    const named = flags.list("resource");
    if (named.length === 0 && urls.length === 0) throw new CommandError("at least one resource must be specified");
    const byGroup = new Map<string, string[]>();
    for (const word of named) {
      const [base = "", subresource] = word.split("/", 2);
      const dot = base.indexOf(".");
      const group = dot < 0 ? (GROUPS[base] ?? "") : base.slice(dot + 1);
      const resource = `${dot < 0 ? base : base.slice(0, dot)}${subresource ? `/${subresource}` : ""}`;
      byGroup.set(group, [...(byGroup.get(group) ?? []), resource]);
    }
    const names = flags.list("resource-name");
    const rules = [...byGroup].map(([group, resources]) => ({
      apiGroups: [group],
      ...(names.length > 0 ? { resourceNames: [...names] } : {}),
      resources,
      verbs,
    }));
    return object("rbac.authorization.k8s.io/v1", kind, name, {
      rules: urls.length > 0 ? [...rules, { nonResourceURLs: [...urls], verbs }] : rules,
    });
  };

/** Groups of resources that people name without. */
const GROUPS: Readonly<Record<string, string>> = {
  deployments: "apps",
  replicasets: "apps",
  statefulsets: "apps",
  daemonsets: "apps",
  jobs: "batch",
  cronjobs: "batch",
  ingresses: "networking.k8s.io",
  networkpolicies: "networking.k8s.io",
  roles: "rbac.authorization.k8s.io",
  rolebindings: "rbac.authorization.k8s.io",
  clusterroles: "rbac.authorization.k8s.io",
  clusterrolebindings: "rbac.authorization.k8s.io",
};

export const BINDING_FLAGS: readonly FlagSpec[] = [
  flag("clusterrole", "string", "the cluster role"),
  flag("role", "string", "the role"),
  flag("user", "array", "users"),
  flag("group", "array", "groups"),
  flag("serviceaccount", "array", "namespace:name"),
];

export const bindingOf =
  (kind: "RoleBinding" | "ClusterRoleBinding"): Make =>
  ({ flags }, name) => {
    const role = flags.string("role");
    const clusterRole = flags.string("clusterrole");
    if ((role === "") === (clusterRole === ""))
      throw new CommandError("exactly one of clusterrole or role must be specified");
    const apiGroup = "rbac.authorization.k8s.io";
    const accounts = flags.list("serviceaccount").map((text) => {
      const [namespaceName, account, ...rest] = text.split(":");
      if (!namespaceName || !account || rest.length > 0)
        throw new CommandError("serviceaccount must be <namespace>:<name>");
      return { kind: "ServiceAccount", name: account, namespace: namespaceName };
    });
    return object(`${apiGroup}/v1`, kind, name, {
      roleRef: { apiGroup, kind: role ? "Role" : "ClusterRole", name: role || clusterRole },
      subjects: [
        ...flags.list("user").map((user) => ({ apiGroup, kind: "User", name: user })),
        ...flags.list("group").map((group) => ({ apiGroup, kind: "Group", name: group })),
        ...accounts,
      ],
    });
  };

export const quota: Make = ({ flags }, name) => {
  const hard = Object.fromEntries(
    flags
      .string("hard")
      .split(",")
      .filter(Boolean)
      .map((pair) => {
        const [key = "", value = ""] = pair.split("=", 2);
        if (!key || !value)
          throw new CommandError(`Invalid argument syntax ${JSON.stringify(pair)}, expected <resource>=<value>`);
        return [key, value];
      }),
  );
  return object("v1", "ResourceQuota", name, { spec: { hard }, status: {} });
};
