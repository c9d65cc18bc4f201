import type { DeepReadonly } from "#base";
import { type Job, resources } from "#kinds";
import { isJobFinished } from "../job/job-pods.ts";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { fromCache, ignoreNotFound, keyOf, timeOf } from "../runtime/objects.ts";

/** Deletes finished Jobs when their time is over. https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/ */
export function createTTLAfterFinishedController(deps: ControllerDeps): Controller {
  const jobs = deps.informers.for(resources.jobs);
  return createController(deps, {
    name: "ttl-after-finished",
    watch({ on, enqueue }) {
      const look = (job: DeepReadonly<Job>) => {
        if (expiryOf(job) !== undefined) enqueue(keyOf(job));
      };
      on(jobs, { add: look, update: look });
    },
    async reconcile(key) {
      const cached = fromCache(jobs, key);
      const expiry = cached && expiryOf(cached);
      if (expiry === undefined) return;
      const left = expiry - deps.clock.now();
      if (left > 0) return { requeueAfterMs: left };
      const { name, namespace } = cached!.metadata;
      const job = await ignoreNotFound(deps.client.get(resources.jobs, name, { namespace }));
      const fresh = job && expiryOf(job);
      if (!job || fresh === undefined || fresh > deps.clock.now()) return;
      const preconditions = job.metadata.uid ? { preconditions: { uid: job.metadata.uid } } : {};
      await ignoreNotFound(
        deps.client.delete(resources.jobs, name, { namespace, propagationPolicy: "Foreground", ...preconditions }),
      );
    },
  });
}

/** When a finished Job is to go, milliseconds; undefined while it is not to. */
function expiryOf(job: DeepReadonly<Job>): number | undefined {
  const { ttlSecondsAfterFinished } = job.spec;
  if (ttlSecondsAfterFinished === undefined || job.metadata.deletionTimestamp || !isJobFinished(job)) return undefined;
  const end = job.status?.conditions?.find(
    ({ type, status }) => (type === "Complete" || type === "Failed") && status === "True",
  );
  return timeOf(end?.lastTransitionTime) + ttlSecondsAfterFinished * 1000;
}
