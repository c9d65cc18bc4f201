import { messageOf } from "#base";
import type { ObservedContainer, ObservedPod } from "./observe.ts";
import type { PodPlan } from "./plan.ts";
import { terminationMessage } from "./termination-message.ts";
import type { WorkerDeps } from "./worker-deps.ts";

/** What a pod's worker sees of its containers: the engine's view with their last messages, and what of it is told to others. */
export interface PodSight {
  /** `observed` is how it is; `shown` is how it is told: a container that is being replaced counts as running until the next run is there. */
  look(): { readonly observed: ObservedPod; readonly shown: ObservedPod };
  /** Messages are still to be read; `look` lacks them. */
  readonly unread: boolean;
  read(): Promise<void>;
  /** A run that is not to be seen before its start is complete. */
  hide(this: void, id: string): void;
  show(this: void, id: string): void;
  readonly hides: boolean;
  /** The plan is carried out now: what it kills to start it again is replaced. */
  replacing(plan: PodPlan, observed: ObservedPod): void;
  /** The replacement of a container (of all) is over, or did not come. */
  notReplaced(name?: string): void;
}

export function createPodSight(deps: Pick<WorkerDeps, "engine" | "view">, uid: string): PodSight {
  const hidden = new Set<string>();
  /** Runs that are killed to be started again in the same go, as they were before. */
  const replaced = new Map<string, ObservedContainer>();
  const messages = new Map<string, string>();

  const visible = () => deps.view.observe(uid).containers.filter(({ id }) => !hidden.has(id));
  const unread = () => visible().filter(({ id, state }) => state === "exited" && !messages.has(id));

  async function readMessages(): Promise<void> {
    for (const run of unread()) {
      const message = await terminationMessage(deps.engine, run).catch((error: unknown) => {
        return `Error on reading termination log: ${messageOf(error)}`;
      });
      messages.set(run.id, message);
    }
  }

  return {
    look() {
      const before = new Map(replaced);
      const { sandboxes } = deps.view.observe(uid);
      const containers = visible().map((run) => {
        const message = run.state === "exited" ? messages.get(run.id) : undefined;
        return message ? { ...run, message } : run;
      });
      const observed = { sandboxes, containers };
      return {
        observed,
        shown: before.size === 0 ? observed : { sandboxes, containers: asBefore(containers, before) },
      };
    },
    get unread() {
      return unread().length > 0;
    },
    read: readMessages,
    hide: (id) => void hidden.add(id),
    show: (id) => void hidden.delete(id),
    get hides() {
      return hidden.size > 0;
    },
    replacing({ kill, start, startInit }, observed) {
      for (const { id, name } of kill) {
        const run = observed.containers.find((candidate) => candidate.id === id);
        if (run && (start.includes(name) || startInit.includes(name))) replaced.set(id, run);
      }
    },
    notReplaced(name) {
      for (const [id, run] of replaced) if (name === undefined || run.name === name) replaced.delete(id);
    },
  };
}

/** Nobody is to see the pod unready while a container is replaced: the newest run of each is shown as it was. */
function asBefore(
  containers: readonly ObservedContainer[],
  before: ReadonlyMap<string, ObservedContainer>,
): readonly ObservedContainer[] {
  const seen = new Set<string>();
  return containers.map((run) => {
    const isNewest = !seen.has(run.name);
    seen.add(run.name);
    return (isNewest && before.get(run.id)) || run;
  });
}
