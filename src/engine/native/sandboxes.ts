import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname as hostHostname } from "node:os";
import { join } from "node:path";
import { EngineError } from "../errors.ts";
import type { SandboxConfig } from "../port.ts";
import { sandboxNamespaces } from "./bundle.ts";
import { discard, stopContainer } from "./containers.ts";
import { engineErrorOf } from "./faults.ts";
import type { Context } from "./context.ts";
import { startPause } from "./pause.ts";
import type { ContainerRecord, SandboxRecord } from "./records.ts";
import { sha256Hex } from "./sys/digest.ts";
import { sysctlPath } from "./sys/namespaces.ts";

const DEFAULT_SHM_BYTES = 64 << 20;
/** Set in every pod, as the kubelet's default runtime does: ping and low ports need no privilege. */
const POD_SYSCTLS = { "net.ipv4.ip_unprivileged_port_start": "0", "net.ipv4.ping_group_range": "0 2147483647" };

/** Makes namespaces, files, network and control group. Undoes all of it when a step fails. */
export async function runSandbox(context: Context, config: SandboxConfig): Promise<SandboxRecord> {
  const runtime = runtimeOf(context, config);
  checkSysctls(config);
  const id = sha256Hex(`${context.random.uuid()}${context.random.uuid()}`);
  const record: SandboxRecord = {
    id,
    config,
    state: "not-ready",
    createdAt: context.clock.now(),
    ips: [],
    cgroup: groupFor(context, config),
    runtime,
    complete: false,
    ...(config.namespaces.network === "pod" ? { netnsPath: join(context.paths.sandbox(id), "net") } : {}),
  };
  // What a crash leaves half made is seen as a stray, but for what only CNI plugins know: they must be told to undo it.
  if (context.network.needsRecord && config.namespaces.network === "pod") context.sandboxes.save(record);
  else context.sandboxes.keep(record);
  return context.sandboxLock.run(id, async () => {
    try {
      await build(context, record);
    } catch (error) {
      await destroy(context, context.sandboxes.all.get(id) ?? record);
      throw engineErrorOf(error, "sandbox-failed", `failed to create sandbox of ${config.namespace}/${config.name}`);
    }
    const ready = context.sandboxes.change(id, { state: "ready", complete: true })!;
    context.emit({ type: "sandbox-ready", sandboxId: id });
    return ready;
  });
}

async function build(context: Context, record: SandboxRecord): Promise<void> {
  const { id, config } = record;
  const directory = context.paths.sandbox(id);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  mkdirSync(config.logDirectory, { recursive: true, mode: 0o755 });
  context.cgroups.create(record.cgroup, config.resources);
  const namespaces = sandboxNamespaces(context, record);
  await context.namespaces.create(namespaces, { hostname: config.hostname, sysctls: sysctlsOf(config) });
  if (config.namespaces.ipc === "pod")
    await context.mounter.tmpfs(join(directory, "shm"), {
      sizeBytes: config.shmSizeBytes ?? DEFAULT_SHM_BYTES,
      mode: 0o1777,
    });
  if (namespaces.net !== undefined) {
    const { ips, attachment } = await context.network.attach(id, namespaces.net, config);
    context.sandboxes.keep({ ...record, ips, attachment });
  }
  writeFiles(context, context.sandboxes.all.get(id)!);
  await startPause(context, id);
}

/** Stops all containers with KILL, then the network. Takes the lock only for the steps that need it. */
export async function stopSandbox(context: Context, sandbox: SandboxRecord): Promise<void> {
  if (await stop(context, sandbox)) {
    const record = context.sandboxes.all.get(sandbox.id);
    if (record) context.sandboxes.save(record);
    context.emit({ type: "sandbox-stopped", sandboxId: sandbox.id });
  }
}

/** @returns whether it was ready before */
async function stop(context: Context, sandbox: SandboxRecord): Promise<boolean> {
  const wasReady = await context.sandboxLock.run(sandbox.id, async () => {
    const before = context.sandboxes.all.get(sandbox.id);
    if (before?.state !== "ready") return false;
    context.sandboxes.keep({ ...before, state: "not-ready" }); // from here on nothing is started in it
    return true;
  });
  await Promise.all(containersOf(context, sandbox.id).map((record) => stopContainer(context, record, { graceMs: 0 })));
  await context.sandboxLock.run(sandbox.id, async () => {
    const record = context.sandboxes.all.get(sandbox.id);
    if (record) await disconnect(context, record);
  });
  return wasReady;
}

export async function removeSandbox(context: Context, sandbox: SandboxRecord): Promise<void> {
  if (await stop(context, sandbox)) context.emit({ type: "sandbox-stopped", sandboxId: sandbox.id });
  await context.sandboxLock.run(sandbox.id, async () => {
    const record = context.sandboxes.all.get(sandbox.id);
    if (record) await destroy(context, record);
  });
  context.emit({ type: "sandbox-removed", sandboxId: sandbox.id });
}

export function containersOf(context: Context, sandboxId: string): ContainerRecord[] {
  return [...context.containers.all.values()].filter((record) => record.sandboxId === sandboxId);
}

async function disconnect(context: Context, record: SandboxRecord): Promise<void> {
  const { id, ips, attachment, config, netnsPath } = record;
  if (attachment && netnsPath !== undefined)
    await context.network.detach({ id, ips, attachment, config, netns: netnsPath });
  const { attachment: _, ...rest } = record;
  context.sandboxes.keep({ ...rest, state: "not-ready", ips: [] });
  for (const file of Object.values(sandboxNamespaces(context, record)))
    if (existsSync(file)) await context.namespaces.release(file);
}

/** Removes the sandbox with everything in it, whatever of it there is. Nothing runs in it any more. */
export async function destroy(context: Context, record: SandboxRecord): Promise<void> {
  for (const container of containersOf(context, record.id)) await discard(context, container);
  await disconnect(context, record);
  const directory = context.paths.sandbox(record.id);
  await context.mounter.removeTree(
    directory,
    ["net", "uts", "ipc", "shm"].map((name) => join(directory, name)),
  );
  await context.cgroups.remove(record.cgroup);
  context.sandboxes.remove(record.id);
}

function runtimeOf(context: Context, { runtimeHandler }: SandboxConfig): string {
  const runtimes = context.host.runtimes;
  if (runtimeHandler === undefined || runtimeHandler === "") return [...runtimes.keys()][0]!;
  if (!runtimes.has(runtimeHandler))
    throw new EngineError("unknown-runtime", `no runtime for "${runtimeHandler}" is configured`);
  return runtimeHandler;
}

/** `/<parent>/<qos>/pod<uid>`; a second sandbox of the same pod gets a group of its own, so removing the first can't hurt it. */
function groupFor(context: Context, { uid, qosClass, attempt }: SandboxConfig): string {
  if (!/^[\w.-]+$/.test(uid)) throw new EngineError("invalid-config", `invalid pod UID ${JSON.stringify(uid)}`);
  const parent = qosClass === "Guaranteed" ? context.cgroupParent : `${context.cgroupParent}/${qosClass.toLowerCase()}`;
  const group = `${parent}/pod${uid}`;
  const taken = new Set([...context.sandboxes.all.values()].map((sandbox) => sandbox.cgroup));
  return taken.has(group) ? `${group}.${attempt}-${context.random.suffix(5)}` : group;
}

function sysctlsOf({ namespaces, sysctls }: SandboxConfig): Record<string, string> {
  return namespaces.network === "pod" ? { ...POD_SYSCTLS, ...sysctls } : { ...sysctls };
}

/** Only what the pod's own namespaces hold: anything else would change the host. https://kubernetes.io/docs/tasks/administer-cluster/sysctl-cluster/ */
function checkSysctls({ sysctls, namespaces }: SandboxConfig): void {
  for (const name of Object.keys(sysctls)) {
    const path = sysctlPath(name).slice("/proc/sys/".length);
    const ipc = /^(kernel\/(shm\w+|msg\w+|sem)|fs\/mqueue\/)/.test(path);
    const net = path.startsWith("net/");
    if (!(ipc && namespaces.ipc === "pod") && !(net && namespaces.network === "pod"))
      throw new EngineError("invalid-config", `sysctl ${name} does not belong to a namespace of this pod`);
  }
}

function writeFiles(context: Context, { id, config, ips }: SandboxRecord): void {
  const directory = context.paths.sandbox(id);
  const hostname = config.namespaces.network === "node" ? hostHostname() : config.hostname;
  const write = (name: string, text: string) => writeFileSync(join(directory, name), text, { mode: 0o644 });
  write("hostname", `${hostname}\n`);
  write("resolv.conf", resolvConf(config));
  write("hosts", config.namespaces.network === "node" ? readFileSync("/etc/hosts", "utf8") : hostsFile(hostname, ips));
}

function resolvConf({ dns }: SandboxConfig): string {
  if (!dns) return existsSync("/etc/resolv.conf") ? readFileSync("/etc/resolv.conf", "utf8") : "";
  const lines = [
    ...(dns.searches.length > 0 ? [`search ${dns.searches.join(" ")}`] : []),
    ...dns.servers.map((server) => `nameserver ${server}`),
    ...(dns.options.length > 0 ? [`options ${dns.options.join(" ")}`] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function hostsFile(hostname: string, ips: readonly string[]): string {
  return [
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
    ...ips.map((ip) => `${ip}\t${hostname}`),
    "",
  ].join("\n");
}
