import { type Clock, type DeepReadonly, messageOf } from "#base";
import type { Engine } from "#engine";
import type { LifecycleHandler } from "#kinds";
import type { AnyContainer, PodEvent, ReadonlyPod } from "../ports.ts";
import { type Dial, ProbeTimeout } from "../probes/dial.ts";
import { httpTarget, probeHttp } from "../probes/http.ts";
import { containerPort } from "../probes/prober.ts";

export interface HookContext {
  readonly pod: ReadonlyPod;
  readonly container: AnyContainer;
  readonly containerId: string;
  readonly podIP: string;
  /** Ends the hook: the budget is used up, the container has gone. */
  readonly signal: AbortSignal;
  event(event: PodEvent): void;
}

/** An exec hook has no time limit of its own; the container's end ends it. */
const NO_LIMIT = 24 * 3600 * 1000;

/**
 * Runs a postStart or preStop handler.
 *
 * Source: https://kubernetes.io/docs/concepts/containers/container-lifecycle-hooks/
 *
 * @throws Error whose message is the container's waiting message
 */
export async function runHook(
  deps: { engine: Engine; clock: Clock; dial: Dial },
  handler: DeepReadonly<LifecycleHandler>,
  context: HookContext,
): Promise<void> {
  const where = `for Container "${context.container.name}" in Pod "${podLabel(context.pod)}" failed`;
  if (handler.exec) {
    const command = handler.exec.command ?? [];
    const failed = (error: string, output: string) =>
      new Error(
        `Exec lifecycle hook ([${command.join(" ")}]) ${where} - error: ${error}, message: ${JSON.stringify(output)}`,
      );
    const result = await deps.engine
      .execSync(context.containerId, { command, timeoutMs: NO_LIMIT })
      .catch((error: unknown) => Promise.reject(failed(messageOf(error), "")));
    if (result.exitCode !== 0) {
      throw failed(
        `command '${command.join(" ")}' exited with ${result.exitCode}: ${result.stderr}`,
        result.stdout + result.stderr,
      );
    }
  } else if (handler.httpGet) {
    const path = handler.httpGet.path ?? "";
    await callHttp(deps, handler.httpGet, context).catch((error: unknown) =>
      Promise.reject(new Error(`HTTP lifecycle hook (${path}) ${where} - error: ${messageOf(error)}`)),
    );
  } else if (handler.sleep) {
    const { seconds } = handler.sleep;
    await deps.clock.sleep(seconds * 1000, { signal: context.signal }).catch(() => {
      throw new Error(
        `Sleep lifecycle hook (${seconds}) ${where} - error: container terminated before sleep hook finished`,
      );
    });
  } else throw new Error("Cannot run handler: invalid handler");
}

/** Any answer will do. A server that does not speak TLS is asked again without. */
async function callHttp(
  deps: { clock: Clock; dial: Dial },
  action: NonNullable<DeepReadonly<LifecycleHandler>["httpGet"]>,
  context: HookContext,
): Promise<void> {
  const port = containerPort(context.container, action.port);
  const limit = new AbortController();
  const timer = deps.clock.setTimer(() => limit.abort(new ProbeTimeout("no answer")), 60_000);
  const signal = AbortSignal.any([limit.signal, context.signal]);
  try {
    const target = httpTarget(action, port, context.podIP, "lifecycle");
    let outcome = await probeHttp(deps.dial, target, signal);
    if (outcome.result === "failure" && outcome.output.endsWith("server gave HTTP response to HTTPS client")) {
      const headers = Object.fromEntries(
        Object.entries(target.headers).filter(([name]) => name.toLowerCase() !== "authorization"),
      );
      const url = new URL(target.url.href.replace(/^https:/, "http:"));
      url.port = String(port);
      outcome = await probeHttp(deps.dial, { url, headers }, signal);
      if (outcome.result !== "failure" || outcome.output.startsWith("HTTP probe failed")) {
        const message = `request to HTTPS lifecycle hook ${url.host} got HTTP response, retry with HTTP succeeded`;
        context.event({ type: "Warning", reason: "LifecycleHTTPFallback", message });
      }
    }
    if (outcome.result === "failure" && !outcome.output.startsWith("HTTP probe failed"))
      throw new Error(outcome.output);
  } finally {
    timer.clear();
  }
}

/** `name_namespace(uid)`, as messages name a pod. */
export const podLabel = (pod: ReadonlyPod): string =>
  `${pod.metadata?.name}_${pod.metadata?.namespace}(${pod.metadata?.uid})`;
