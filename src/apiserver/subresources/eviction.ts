import {
  type ApiObject,
  badRequest,
  failure,
  matchesSelector,
  notFound,
  type Pod,
  type PodDisruptionBudget,
  resources,
  type Status,
} from "#kinds";
import { type Call, isDryRun } from "../pipeline/call.ts";
import { keyOf } from "../registry/keys.ts";
import { deleteObject, type DeleteOptions } from "../verbs/delete.ts";
import { updateObject } from "../verbs/update.ts";
import { deepClone } from "#base";

import { timeOf } from "../verbs/create.ts";

/**
 * `pods/eviction`: a delete that PodDisruptionBudgets may refuse.
 * @throws StatusError 429 while a budget allows no disruption
 * @see https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
 */
export async function evictPod(call: Call, eviction: ApiObject & { deleteOptions?: DeleteOptions }): Promise<Status> {
  const { info, kind, server } = call;
  const stored = server.store.latest(keyOf(kind, info.namespace, info.name));
  if (!stored) throw notFound(kind, info.name);
  if (eviction.metadata?.name && eviction.metadata.name !== info.name)
    throw badRequest("name in URL does not match name in Eviction object");
  const pod = stored.object as unknown as Pod;
  const options = eviction.deleteOptions ?? {};
  if (mustAskBudget(pod)) await spendBudget(call, pod);
  if (!isDryRun(call, options)) await markDisrupted(call, options);
  await deleteObject({ ...call, info: { ...info, subresource: "" } }, options);
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
}

/** Controllers see by the condition that the pod did not fail of itself. */
async function markDisrupted(call: Call, { preconditions }: DeleteOptions): Promise<void> {
  await updateObject(
    { ...call, info: { ...call.info, subresource: "status" } },
    {
      change(current) {
        const pod = deepClone<ApiObject>(current) as unknown as Pod;
        const conditions = pod.status?.conditions?.filter(({ type }) => type !== "DisruptionTarget") ?? [];
        const condition = {
          type: "DisruptionTarget",
          status: "True",
          reason: "EvictionByEvictionAPI",
          message: "Eviction API: evicting",
          lastTransitionTime: timeOf(call.server.clock.now()),
          ...(pod.metadata.generation ? { observedGeneration: pod.metadata.generation } : {}),
        };
        pod.status = { ...pod.status, conditions: [...conditions, condition] };
        return pod as unknown as ApiObject;
      },
      ...(preconditions?.uid ? { uid: preconditions.uid } : {}),
      ...(preconditions?.resourceVersion ? { resourceVersion: preconditions.resourceVersion } : {}),
    },
  );
}

/** A pod that is done, not started or on its way out disrupts nobody. */
function mustAskBudget(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return phase !== "Succeeded" && phase !== "Failed" && phase !== "Pending" && !pod.metadata.deletionTimestamp;
}

async function spendBudget(call: Call, pod: Pod): Promise<void> {
  const { reader, scheme } = call.server;
  const budgets = reader
    .list(resources.podDisruptionBudgets, call.info.namespace)
    .filter((one) => matchesSelector(one.spec?.selector, pod.metadata.labels ?? {}));
  if (budgets.length > 1)
    throw failure(
      500,
      "InternalError",
      `This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.`,
    );
  const [budget] = budgets;
  if (!budget) return;
  const ready = pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
  if (!ready && budget.spec?.unhealthyPodEvictionPolicy === "AlwaysAllow") return;
  if (
    !ready &&
    (budget.status?.currentHealthy ?? 0) >= (budget.status?.desiredHealthy ?? 0) &&
    (budget.status?.desiredHealthy ?? 0) > 0
  )
    return;
  const kind = scheme.byKind("policy/v1", "PodDisruptionBudget")!;
  const info = {
    ...call.info,
    group: "policy",
    resource: kind.resource,
    subresource: "status",
    name: budget.metadata.name!,
  };
  await updateObject(
    { ...call, kind, info },
    {
      change(current) {
        const copy = deepClone<PodDisruptionBudget>(current as unknown as PodDisruptionBudget);
        takeOne(copy, pod.metadata.name!, timeOf(call.server.clock.now()));
        return copy as unknown as ApiObject;
      },
    },
  );
}

/** @throws StatusError 429 */
function takeOne(budget: PodDisruptionBudget, pod: string, now: string): void {
  const { name, generation } = budget.metadata;
  const status =
    budget.status ??
    ({ disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 } as NonNullable<
      PodDisruptionBudget["status"]
    >);
  if ((status.observedGeneration ?? 0) < (generation ?? 0)) {
    throw tooMany(10, [
      { reason: "DisruptionBudget", message: `The disruption budget ${name} is still being processed by the server.` },
    ]);
  }
  const allowed = status.disruptionsAllowed ?? 0;
  if (allowed <= 0) {
    const message = `The disruption budget ${name} needs ${status.desiredHealthy} healthy pods and has ${status.currentHealthy} currently`;
    throw tooMany(undefined, [{ reason: "DisruptionBudget", message }]);
  }
  budget.status = {
    ...status,
    disruptionsAllowed: allowed - 1,
    disruptedPods: { ...status.disruptedPods, [pod]: now },
  };
}

function tooMany(retryAfterSeconds: number | undefined, causes: { reason: string; message: string }[]): Error {
  return failure(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.", {
    causes,
    ...(retryAfterSeconds ? { retryAfterSeconds } : {}),
  });
}
