import { type Clock, type DeepReadonly, messageOf } from "#base";
import type { Engine } from "#engine";
import type { Probe } from "#kinds";
import { goDuration } from "../duration.ts";
import { expand } from "../env/expand.ts";
import type { AnyContainer } from "../ports.ts";
import { type Dial, dialFailure, ProbeTimeout } from "./dial.ts";
import { probeGrpc } from "./grpc.ts";
import { httpTarget, probeHttp } from "./http.ts";
import { failure, MAX_ANSWER, type Outcome, success } from "./outcome.ts";

export interface ProbeTarget {
  readonly container: AnyContainer;
  readonly containerId: string;
  /** The pod's address; empty when it has none. */
  readonly podIP: string;
}

export interface ProberDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly dial: Dial;
}

/** One attempt, with the probe's own timeout. Never throws, and leaves nothing behind. */
export async function runProbe(
  deps: ProberDeps,
  probe: DeepReadonly<Probe>,
  target: ProbeTarget,
  signal: AbortSignal,
): Promise<Outcome> {
  const timeoutMs = (probe.timeoutSeconds ?? 1) * 1000;
  if (probe.exec) return probeExec(deps.engine, probe.exec.command ?? [], target, timeoutMs);
  const limit = new AbortController();
  const timer = deps.clock.setTimer(() => limit.abort(new ProbeTimeout("the probe's time is up")), timeoutMs);
  const both = AbortSignal.any([signal, limit.signal]);
  try {
    return await overNetwork(deps.dial, probe, target, timeoutMs, both);
  } catch (error) {
    return { result: "error", output: error instanceof Error ? error.message : String(error) };
  } finally {
    timer.clear();
  }
}

async function overNetwork(
  dial: Dial,
  probe: DeepReadonly<Probe>,
  { container, podIP }: ProbeTarget,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Outcome> {
  if (probe.httpGet) {
    const port = containerPort(container, probe.httpGet.port);
    return probeHttp(dial, httpTarget(probe.httpGet, port, podIP, "probe"), signal);
  }
  if (probe.tcpSocket) {
    const port = containerPort(container, probe.tcpSocket.port);
    const host = probe.tcpSocket.host || podIP;
    try {
      (await dial(host, port, signal)).destroy();
      return success;
    } catch (error) {
      return failure(dialFailure(host, port, error));
    }
  }
  if (probe.grpc) {
    const { port, service = "" } = probe.grpc;
    return probeGrpc(dial, { host: podIP, port, service, timeoutMs }, signal);
  }
  throw new Error(`missing probe handler for container ${container.name}`);
}

async function probeExec(
  engine: Engine,
  command: readonly string[],
  { container, containerId }: ProbeTarget,
  timeoutMs: number,
): Promise<Outcome> {
  const values = new Map((container.env ?? []).map(({ name, value = "" }) => [name, value]));
  const expanded = command.map((word) => expand(word, (name) => values.get(name)));
  try {
    const result = await engine.execSync(containerId, { command: expanded, timeoutMs, maxOutput: MAX_ANSWER });
    if (result.timedOut) {
      return failure(`command timed out: "${expanded.join(" ")}" timed out after ${goDuration(timeoutMs)}`);
    }
    if (result.exitCode === 0) return success;
    return failure((result.stdout + result.stderr).slice(0, MAX_ANSWER));
  } catch (error) {
    // Clients know this text: a node's runtime is asked over CRI.
    return {
      result: "error",
      output: `rpc error: code = Unknown desc = failed to exec in container: ${messageOf(error)}`,
    };
  }
}

/** A port by number, or by its name among the container's ports. @throws Error when there is no such port */
export function containerPort(container: AnyContainer, port: number | string): number {
  const number = Number(port);
  if (Number.isInteger(number) && number > 0 && number < 65536) return number;
  const named = (container.ports ?? []).find((candidate) => candidate.name === port);
  if (!named) throw new Error(`couldn't find port: "${port}" in pod's container "${container.name}"`);
  return named.containerPort;
}
