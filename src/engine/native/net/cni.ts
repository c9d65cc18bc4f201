import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#base";
import { EngineError } from "../../errors.ts";
import type { SandboxConfig } from "../../port.ts";
import { findProgram } from "../host.ts";
import type { Libc } from "../sys/libc.ts";
import type { Namespaces } from "../sys/namespaces.ts";
import { mustRun, type Run } from "../sys/run.ts";
import { linkUp, openNetlink } from "./netlink.ts";
import type { PodNetwork } from "./pod-network.ts";

/** A network of the Container Network Interface: https://www.cni.dev/docs/spec/ */
export interface CNINetwork {
  readonly name: string;
  readonly cniVersion: string;
  readonly plugins: readonly CNIPlugin[];
}

export interface CNIPlugin {
  readonly type: string;
  readonly capabilities?: Readonly<Record<string, boolean>>;
  readonly [key: string]: unknown;
}

const PLUGIN_DIRECTORIES = ["/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"];
const INTERFACE = "eth0";

/** The pod network that a CNI configuration describes; it replaces the built-in one with its address pool and rules. */
export function createCNINetwork(
  deps: { run: Run; libc: Libc | undefined; namespaces: Namespaces },
  options: { confDir: string },
): PodNetwork {
  const network = readCNINetwork(options.confDir);
  const call = async (command: "ADD" | "DEL", request: Request, plugin: CNIPlugin, prevResult: unknown) => {
    const program = findProgram(plugin.type, PLUGIN_DIRECTORIES);
    if (program === undefined)
      throw new EngineError(
        "sandbox-failed",
        `CNI plugin ${JSON.stringify(plugin.type)} is in none of ${PLUGIN_DIRECTORIES.join(", ")}`,
        {
          hint: "apt-get install containernetworking-plugins",
        },
      );
    const result = await deps.run(program, [], {
      input: JSON.stringify(pluginInput(request.network, plugin, request.runtimeConfig, prevResult)),
      env: environmentOf(command, request),
    });
    if (result.code !== 0)
      throw new EngineError(
        "sandbox-failed",
        `CNI plugin ${plugin.type} ${command}: ${pluginMessage(result.stdout || result.stderr)}`,
      );
    return result.stdout.trim() === "" ? prevResult : (JSON.parse(result.stdout) as unknown);
  };
  const remove = async (request: Request, result: unknown) => {
    for (const plugin of request.network.plugins.toReversed()) await call("DEL", request, plugin, result);
  };
  return {
    needsRecord: true,
    async start() {
      writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
    },
    async attach(sandboxId, netns, config) {
      const request: Request = {
        sandboxId,
        netns,
        network,
        config,
        runtimeConfig: { portMappings: config.portMappings },
      };
      await loopbackUp(deps, netns);
      let result: unknown;
      try {
        for (const plugin of network.plugins) result = await call("ADD", request, plugin, result);
      } catch (error) {
        await remove(request, result).catch(() => {}); // the first error is the one that tells; DEL of a half ADD may fail for the same reason
        throw error;
      }
      const attachment = { kind: "cni", network, runtimeConfig: request.runtimeConfig, result } as const;
      return { ips: addressesOf(result), attachment };
    },
    adopt() {},
    async detach({ id, netns, config, attachment }) {
      if (attachment.kind !== "cni") return;
      await remove(
        { sandboxId: id, netns, config, network: attachment.network, runtimeConfig: attachment.runtimeConfig },
        attachment.result,
      );
    },
    async purge() {}, // every sandbox was detached; a bridge that the plugins share is not only ours
  };
}

interface Request {
  readonly sandboxId: string;
  readonly netns: string;
  readonly network: CNINetwork;
  readonly config: SandboxConfig;
  readonly runtimeConfig: Readonly<Record<string, unknown>>;
}

/** The first configuration of a directory, by name, as other runtimes choose it. @throws EngineError `invalid-config` */
export function readCNINetwork(directory: string): CNINetwork {
  const fail = (why: string) => new EngineError("invalid-config", `CNI configuration in ${directory}: ${why}`);
  let name: string | undefined;
  try {
    name = readdirSync(directory)
      .filter((entry) => /\.(conflist|conf|json)$/.test(entry))
      .toSorted()[0];
    if (name === undefined) throw fail("no *.conflist, *.conf or *.json");
    const parsed = JSON.parse(readFileSync(join(directory, name), "utf8")) as Partial<CNINetwork> & Partial<CNIPlugin>;
    const plugins = parsed.plugins ?? (typeof parsed.type === "string" ? [parsed as CNIPlugin] : []);
    if (typeof parsed.name !== "string" || plugins.length === 0) throw fail(`${name} has no name or no plugins`);
    const bad = plugins.find(
      (plugin) => typeof plugin.type !== "string" || !/^[\w.-]+$/.test(plugin.type) || plugin.type.startsWith("."),
    );
    if (bad) throw fail(`${name}: invalid plugin type ${JSON.stringify(bad.type)}`);
    return { name: parsed.name, cniVersion: parsed.cniVersion ?? "0.2.0", plugins };
  } catch (error) {
    throw error instanceof EngineError ? error : fail(`${name ?? ""} ${messageOf(error)}`);
  }
}

/** What a plugin gets on its standard input. */
export function pluginInput(
  network: CNINetwork,
  plugin: CNIPlugin,
  runtimeConfig: Readonly<Record<string, unknown>>,
  prevResult: unknown,
): Record<string, unknown> {
  const wanted = Object.entries(runtimeConfig).filter(([capability]) => plugin.capabilities?.[capability] === true);
  const { capabilities: _, ...rest } = plugin;
  return {
    ...rest,
    name: network.name,
    cniVersion: network.cniVersion,
    ...(wanted.length > 0 ? { runtimeConfig: Object.fromEntries(wanted) } : {}),
    ...(prevResult === undefined ? {} : { prevResult }),
  };
}

function environmentOf(command: string, { sandboxId, netns, config }: Request): Record<string, string> {
  const args = {
    IgnoreUnknown: "1",
    K8S_POD_NAMESPACE: config.namespace,
    K8S_POD_NAME: config.name,
    K8S_POD_UID: config.uid,
    K8S_POD_INFRA_CONTAINER_ID: sandboxId,
  };
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: sandboxId,
    CNI_NETNS: netns,
    CNI_IFNAME: INTERFACE,
    CNI_PATH: PLUGIN_DIRECTORIES.join(":"),
    CNI_ARGS: Object.entries(args)
      .map(([name, value]) => `${name}=${value}`)
      .join(";"),
  };
}

/** IPv4 first, without prefix lengths. */
function addressesOf(result: unknown): string[] {
  const ips = ((result as { ips?: { address?: string }[] } | undefined)?.ips ?? []).flatMap(
    ({ address }) => address?.split("/")[0] ?? [],
  );
  if (ips.length === 0) throw new EngineError("sandbox-failed", "the CNI plugins gave the pod no address");
  return ips.toSorted((a, b) => Number(a.includes(":")) - Number(b.includes(":")));
}

function pluginMessage(output: string): string {
  try {
    const { msg, details } = JSON.parse(output) as { msg?: string; details?: string };
    return [msg, details].filter(Boolean).join("; ") || output.trim();
  } catch {
    return output.trim(); // a plugin that broke before it could say it in JSON
  }
}

async function loopbackUp(
  { run, libc, namespaces }: { run: Run; libc: Libc | undefined; namespaces: Namespaces },
  netns: string,
): Promise<void> {
  if (!libc) return void (await mustRun(run, "nsenter", [`--net=${netns}`, "ip", "link", "set", "lo", "up"]));
  const netlink = namespaces.visitNetwork(netns, () => openNetlink(libc));
  try {
    netlink.request(linkUp(1));
  } finally {
    netlink.close();
  }
}
