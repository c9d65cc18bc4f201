import { isSidecar } from "../pods/restart-policy.ts";
import type { ReadonlyPod } from "../ports.ts";

/** Sidecars stop after all main containers, the last of them first. */
export interface TerminationOrder {
  /** Resolves when those before it have stopped, or the signal aborts. */
  turn(name: string, signal: AbortSignal): Promise<void>;
  stopped(name: string): void;
}

/** @param running names of the containers that run now; nobody waits for others */
export function createTerminationOrder(pod: ReadonlyPod, running: readonly string[]): TerminationOrder {
  const ends = new Map(running.map((name) => [name, Promise.withResolvers<void>()]));
  const mains = (pod.spec?.containers ?? []).map((container) => container.name);
  const sidecars = (pod.spec?.initContainers ?? []).filter(isSidecar).map((container) => container.name);
  const before = (name: string): string[] => {
    const index = sidecars.indexOf(name);
    if (index < 0) return [];
    return [...mains, ...sidecars.slice(index + 1)];
  };
  return {
    async turn(name, signal) {
      const aborted = new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
      const others = before(name).flatMap((other) => ends.get(other)?.promise ?? []);
      await Promise.race([Promise.all(others), aborted]);
    },
    stopped: (name) => ends.get(name)?.resolve(),
  };
}
