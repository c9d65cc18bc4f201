import type { Clock, DeepReadonly, Timer } from "#base";
import type { Probe } from "#kinds";
import type { Outcome } from "./outcome.ts";

export type ProbeType = "startup" | "readiness" | "liveness";
export type Verdict = "success" | "failure" | "unknown";

/** One probe of one running container: its own timer, at most one attempt at a time. */
export interface ProbeRunner {
  readonly verdict: Verdict;
  start(firstAt: number): void;
  stop(): void;
}

/**
 * Attempts come every `periodSeconds` from the first on; the verdict changes after `successThreshold` or
 * `failureThreshold` equal results in a row. After a verdict that ends the container (or ends its start) it rests.
 */
export function createProbeRunner(
  deps: {
    clock: Clock;
    attempt(signal: AbortSignal): Promise<Outcome>;
    /** After every attempt, before a changed verdict. */
    report(outcome: Outcome): void;
    changed(verdict: Verdict): void;
  },
  options: { type: ProbeType; probe: DeepReadonly<Probe>; initial: Verdict },
): ProbeRunner {
  const { clock } = deps;
  const { type, probe } = options;
  const period = (probe.periodSeconds ?? 10) * 1000;
  const needed = { success: probe.successThreshold ?? 1, failure: probe.failureThreshold ?? 3 };
  const stopping = new AbortController();
  let verdict = options.initial;
  let last: "success" | "failure" | undefined;
  let inARow = 0;
  let timer: Timer | undefined;

  async function tick(at: number): Promise<void> {
    const outcome = await deps.attempt(stopping.signal);
    if (stopping.signal.aborted) return;
    deps.report(outcome);
    if (outcome.result !== "error" && count(outcome.result === "failure" ? "failure" : "success")) return;
    schedule(Math.max(at + period, clock.now()));
  }

  /** True when there is nothing more to probe. */
  function count(result: "success" | "failure"): boolean {
    inARow = result === last ? inARow + 1 : 1;
    last = result;
    if (inARow < needed[result]) return false;
    const before = verdict;
    verdict = result;
    if (before !== verdict) deps.changed(verdict);
    return type === "startup" || (type === "liveness" && result === "failure");
  }

  function schedule(at: number): void {
    if (stopping.signal.aborted) return;
    timer = clock.setTimer(() => void tick(at), Math.max(0, at - clock.now()));
  }

  return {
    get verdict() {
      return verdict;
    },
    start: schedule,
    stop() {
      timer?.clear();
      stopping.abort();
    },
  };
}
