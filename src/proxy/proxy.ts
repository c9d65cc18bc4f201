import { spawn } from "node:child_process";
import { type Clock, type Logger, messageOf, type Timer } from "#base";
import type { Informers } from "#client";
import { type Pod, resources } from "#kinds";
import { changeScript, elementsOf, skeleton, type TableState } from "./elements.ts";
import { planFrontends, type Plan } from "./plan.ts";

export interface ProxyDeps {
  readonly informers: Informers;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface ProxyOptions {
  /** Name of the nftables table; unique on the host. */
  readonly table: string;
  readonly serviceCIDR: string;
  readonly clusterCIDR: string;
  /** Source address of the host's own connections to Services; an address of `lo`. */
  readonly hostAddress: string;
  readonly nodes: readonly string[];
}

/** Routes Services and host ports of this host. Disposing it leaves the routes as they are; `removeProxy` takes them away. */
export interface Proxy extends AsyncDisposable {
  /** Resolves when the routes stand for the first time. */
  readonly started: Promise<void>;
  /** Resolves when all changes so far are routed. */
  settled(): Promise<void>;
}

const EMPTY: TableState = { parts: new Map(), elements: new Map() };
const FIRST_RETRY = 100;
const MAX_RETRY = 10_000;
/** How often it is looked whether somebody removed the table, milliseconds. */
const CHECK = 60_000;

export function startProxy(deps: ProxyDeps, options: ProxyOptions): Proxy {
  const services = deps.informers.for(resources.services);
  const slices = deps.informers.for(resources.endpointSlices);
  const pods = deps.informers.for(resources.pods);
  const nodes = new Set(options.nodes);
  const ported = new Map<string, Pod>();
  const subscriptions = new DisposableStack();
  /** What the table holds; undefined = not known, so it is made anew. */
  let applied: { state: TableState; plan: Plan } | undefined;
  let running: Promise<void> | undefined;
  let dirty = false;
  let retry = FIRST_RETRY;
  let timer: Timer | undefined;
  let over = false;

  async function sync(): Promise<void> {
    const plan = planFrontends({ services: services.list(), slices: slices.list(), pods: [...ported.values()], nodes });
    const state = elementsOf(plan);
    const script = applied ? changeScript(options.table, applied.state, state) : fullScript(options, state);
    if (script) await runProgram("nft", ["-f", "-"], script);
    const before = applied?.plan;
    applied = { state, plan };
    if (before) await forgetFlows(before, plan, deps.logger);
  }

  function kick(): void {
    dirty = true;
    if (running || over) return;
    running = (async () => {
      while (dirty && !over) {
        dirty = false;
        // what changes in the same turn is one transaction
        await new Promise<void>((resolve) => setImmediate(resolve));
        try {
          await sync();
          retry = FIRST_RETRY;
        } catch (error) {
          deps.logger.warn("routing services failed; it is tried again", { delay: retry, error: messageOf(error) });
          applied = undefined;
          timer?.clear();
          timer = deps.clock.setTimer(kick, retry);
          retry = Math.min(MAX_RETRY, retry * 2);
          break;
        }
      }
      running = undefined;
    })();
  }

  const check = async () => {
    const alive = await runProgram("nft", ["list", "table", "ip", options.table], "").then(
      () => true,
      () => false,
    );
    if (!alive && !over) {
      applied = undefined;
      kick();
    }
  };
  let watchdog: Timer | undefined;
  const watch = () => {
    watchdog = deps.clock.setTimer(() => {
      void check().finally(() => !over && watch());
    }, CHECK);
  };

  const started = (async () => {
    await Promise.all([services.synced(), slices.synced(), pods.synced()]);
    await runProgram(
      "ip",
      ["route", "replace", "local", options.serviceCIDR, "dev", "lo", "src", options.hostAddress],
      "",
    );
    subscriptions.use(services.onChange({ add: kick, update: kick, delete: kick }));
    subscriptions.use(slices.onChange({ add: kick, update: kick, delete: kick }));
    const note = (pod: Pod, gone: boolean) => {
      const uid = pod.metadata.uid ?? "";
      const counts = !gone && nodes.has(pod.spec?.nodeName ?? "") && hasHostPorts(pod);
      if (!counts && !ported.has(uid)) return;
      if (counts) ported.set(uid, pod);
      else ported.delete(uid);
      kick();
    };
    subscriptions.use(
      pods.onChange({
        add: (pod) => note(pod as Pod, false),
        update: (pod) => note(pod as Pod, false),
        delete: (pod) => note(pod as Pod, true),
      }),
    );
    kick();
    await running;
    watch();
  })();
  started.catch((error: unknown) => deps.logger.error("the proxy did not start", { error }));

  return {
    started,
    async settled() {
      await started;
      while (running) await running;
    },
    async [Symbol.asyncDispose]() {
      over = true;
      timer?.clear();
      watchdog?.clear();
      subscriptions.dispose();
      await running;
    },
  };
}

function hasHostPorts(pod: Pod): boolean {
  const all = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])];
  return !pod.spec?.hostNetwork && all.some((container) => container.ports?.some((port) => port.hostPort));
}

function fullScript(options: ProxyOptions, state: TableState): string {
  const { table } = options;
  return `table ip ${table} {}\ndelete table ip ${table}\n${skeleton(table, options)}${changeScript(table, EMPTY, state)}`;
}

/** Takes the table and the local route away; succeeds when they are not there. */
export async function removeProxy({ table, serviceCIDR }: Pick<ProxyOptions, "table" | "serviceCIDR">): Promise<void> {
  await runProgram("nft", ["-f", "-"], `table ip ${table} {}\ndelete table ip ${table}\n`);
  await runProgram("ip", ["route", "delete", "local", serviceCIDR, "dev", "lo"], "").catch((error: unknown) => {
    if (!/No such process/.test(messageOf(error))) throw error;
  });
}

/** Datagrams have no end that would end their flow: flows to targets that are gone are forgotten, where `conntrack` is installed. */
async function forgetFlows(before: Plan, now: Plan, logger: Logger): Promise<void> {
  for (const [key, frontend] of before) {
    if (frontend.protocol !== "udp") continue;
    const kept = new Set(now.get(key)?.targets.map(({ ip, port }) => `${ip}:${port}`));
    for (const { ip, port } of frontend.targets) {
      if (kept.has(`${ip}:${port}`)) continue;
      const where = frontend.address === undefined ? [] : ["--orig-dst", frontend.address];
      const args = ["-D", "-p", "udp", ...where, "--orig-port-dst", String(frontend.port), "--dst-nat", ip];
      await runProgram("conntrack", args, "").catch((error: unknown) =>
        logger.debug("flows were not forgotten", { why: messageOf(error) }),
      );
    }
  }
}

/** @throws Error with what the program said */
function runProgram(program: string, args: readonly string[], input: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["pipe", "ignore", "pipe"] });
    let said = "";
    child.stderr.on("data", (chunk: Buffer) => {
      if (said.length < 4096) said += chunk.toString("utf8");
    });
    child.on("error", reject);
    child.on("close", (code) =>
      code === 0 ? resolve() : reject(new Error(`${program} ${args.join(" ")} ended with ${code}: ${said.trim()}`)),
    );
    // a program that ends early closes its input; its exit code tells why
    child.stdin.on("error", () => {});
    child.stdin.end(input);
  });
}
