import { createServer, type Server } from "node:net";
import { messageOf } from "#base";
import type { Pod } from "#kinds";
import { type CommandSpec, type Context, flag } from "../context.ts";
import { CommandError } from "../errors.ts";
import { durationMs } from "../flags.ts";
import { onePodFor, podsFor } from "../pods-for.ts";

export const portForward: CommandSpec = {
  name: "port-forward",
  usage: "port-forward TYPE/NAME [options] [LOCAL_PORT:]REMOTE_PORT [...[LOCAL_PORT_N:]REMOTE_PORT_N]",
  short: "Forward one or more local ports to a pod",
  flags: [
    flag("address", "list", "addresses to listen on", { default: ["localhost"] }),
    flag("pod-running-timeout", "duration", "how long to wait for a pod", { default: "1m0s" }),
  ],
  async run(context) {
    const { args, flags, environment, out } = context;
    const [word, ...ports] = args;
    if (!word || ports.length === 0)
      throw new CommandError(
        "TYPE/NAME and list of ports are required for port-forward\nSee 'kubectl port-forward -h' for help and examples",
      );
    const pairs = await pairsOf(context, word, ports);
    const pod = await onePodFor(context, word, durationMs(flags.string("pod-running-timeout")) ?? 60_000);
    if (pod.status?.phase !== "Running")
      throw new CommandError(`unable to forward port because pod is not running. Current status=${pod.status?.phase}`);
    const servers: Server[] = [];
    const interrupted = Promise.withResolvers<void>();
    using _interrupt = environment.onInterrupt(() => interrupted.resolve());
    try {
      for (const { local, remote } of pairs) {
        const container = remoteOf(pod, remote);
        for (const address of addressesOf(flags.list("address"))) {
          const server = await listen(context, pod, address, local, container).catch((error: unknown) => {
            // without IPv6 the other address serves
            if (address.optional) return undefined;
            throw new CommandError(
              `unable to listen on any of the requested ports: [{${local} ${container}}]: ${messageOf(error)}`,
            );
          });
          if (!server) continue;
          servers.push(server);
          const bound = server.address();
          const port = typeof bound === "object" && bound ? bound.port : local;
          out(`Forwarding from ${address.shown}:${port} -> ${container}\n`);
        }
      }
      await interrupted.promise;
    } finally {
      for (const server of servers) server.close();
    }
  },
};

interface Pair {
  readonly local: number;
  readonly remote: string;
}

/** `8080:80`, `80`, `:80`, `http`; those of a service are the service's ports. */
async function pairsOf(context: Context, word: string, ports: readonly string[]): Promise<Pair[]> {
  const isService = /^(services?|svc)(\.|\/)/.test(word);
  const service = isService
    ? ((await podsFor(context, word)).object.spec as {
        ports?: { port: number; name?: string; targetPort?: number | string }[];
      })
    : undefined;
  return ports.map((text) => {
    const parts = text.split(":");
    if (parts.length > 2) throw new CommandError(`invalid port format '${text}'`);
    const remoteText = parts.at(-1)!;
    const localText = parts.length === 2 ? parts[0]! : remoteText;
    const found = service?.ports?.find(({ port, name }) => String(port) === remoteText || name === remoteText);
    if (service && !found)
      throw new CommandError(`Service ${word.split("/")[1]} does not have a service port ${remoteText}`);
    const local = localText === "" ? 0 : Number(/^\d+$/.test(localText) ? localText : (found?.port ?? 0));
    if (!Number.isInteger(local) || local > 65535)
      throw new CommandError(
        `error parsing local port '${localText}': strconv.ParseUint: parsing ${JSON.stringify(localText)}: invalid syntax`,
      );
    return { local, remote: String(found?.targetPort ?? remoteText) };
  });
}

function remoteOf(pod: Pod, text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  const found = pod.spec.containers.flatMap(({ ports = [] }) => ports).find(({ name }) => name === text);
  if (!found) throw new CommandError(`Pod '${pod.metadata.name}' does not have a named port '${text}'`);
  return found.containerPort;
}

interface Address {
  readonly host: string;
  readonly shown: string;
  readonly optional: boolean;
}

function addressesOf(names: readonly string[]): Address[] {
  return names.flatMap((name) =>
    name === "localhost"
      ? [
          { host: "127.0.0.1", shown: "127.0.0.1", optional: false },
          { host: "::1", shown: "[::1]", optional: true },
        ]
      : [{ host: name, shown: name.includes(":") ? `[${name}]` : name, optional: false }],
  );
}

function listen(context: Context, pod: Pod, { host }: Address, local: number, remote: number): Promise<Server> {
  const { streams, namespace, out, err } = context;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    out(`Handling connection for ${(server.address() as { port: number } | null)?.port ?? local}\n`);
    socket.on("error", () => socket.destroy());
    streams.connect(namespace, pod.metadata.name, remote).then(
      (far) => {
        far.on("error", (error) => {
          err(`error: ${messageOf(error)}\n`);
          socket.destroy();
        });
        far.once("close", () => socket.destroy());
        socket.once("close", () => far.destroy());
        socket.pipe(far);
        far.pipe(socket);
      },
      (error: unknown) => {
        err(`error: ${messageOf(error)}\n`);
        socket.destroy();
      },
    );
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(local, host, () => resolve(server));
  });
}
