import type { ApiObject } from "#kinds";

/** Whether an applied object has come to what it asks for; `why` is one clause for a person. */
export interface Readiness {
  readonly ready: boolean;
  /** It can't become ready any more (a failed Job or pod). */
  readonly failed: boolean;
  readonly why: string;
}

interface Counted {
  spec?: { replicas?: number; completions?: number; paused?: boolean };
  status?: Record<string, unknown> & {
    conditions?: { type: string; status: string; reason?: string; message?: string }[];
  };
}

/** Readiness by kind, as `kubectl rollout status` and `kubectl wait` would judge it; kinds without a notion of it are ready. */
export function readinessOf(object: ApiObject): Readiness {
  const rule = RULES[object.kind];
  if (!rule) return { ready: true, failed: false, why: "exists" };
  return rule(object as ApiObject & Counted, Number(object.metadata.generation ?? 0));
}

type Rule = (object: ApiObject & Counted, generation: number) => Readiness;

const RULES: Readonly<Record<string, Rule>> = {
  Deployment: replicas("updatedReplicas", "availableReplicas"),
  StatefulSet: replicas("updatedReplicas", "readyReplicas"),
  ReplicaSet: replicas("availableReplicas"),
  ReplicationController: replicas("availableReplicas"),
  DaemonSet(object, generation) {
    const wanted = count(object, "desiredNumberScheduled");
    const available = count(object, "numberAvailable");
    const ready =
      count(object, "observedGeneration") >= generation &&
      available >= wanted &&
      count(object, "updatedNumberScheduled") >= wanted;
    return { ready, failed: false, why: `${available} of ${wanted} pods are available` };
  },
  Job(object) {
    const failed = condition(object, "Failed");
    if (failed) return { ready: false, failed: true, why: failed.message ?? failed.reason ?? "failed" };
    const done = condition(object, "Complete") !== undefined;
    const of = object.spec?.completions ?? 1;
    return { ready: done, failed: false, why: `${count(object, "succeeded")} of ${of} completions` };
  },
  Pod(object) {
    const phase = String(object.status?.phase ?? "Pending");
    const ready = condition(object, "Ready") !== undefined || phase === "Succeeded";
    return { ready, failed: phase === "Failed", why: `is ${phase}` };
  },
  PersistentVolumeClaim(object) {
    const phase = String(object.status?.phase ?? "Pending");
    // WaitForFirstConsumer: Pending until a pod uses it is what it should be
    return { ready: phase !== "Lost", failed: phase === "Lost", why: `is ${phase}` };
  },
  CustomResourceDefinition: (object) => ({
    ready: condition(object, "Established") !== undefined,
    failed: false,
    why: "is not established",
  }),
  APIService: (object) => ({
    ready: condition(object, "Available") !== undefined,
    failed: false,
    why: "is not available",
  }),
};

function replicas(...fields: string[]): Rule {
  return (object, generation) => {
    const wanted = object.spec?.replicas ?? 1;
    const least = Math.min(...fields.map((field) => count(object, field)));
    const stuck = object.status?.conditions?.find((c) => c.type === "Progressing" && c.status === "False");
    const ready =
      count(object, "observedGeneration") >= generation && least >= wanted && count(object, "replicas") <= wanted;
    if (ready) return { ready, failed: false, why: `${wanted} of ${wanted} replicas are available` };
    return {
      ready,
      failed: stuck?.reason === "ProgressDeadlineExceeded",
      why: stuck?.message ?? `${least} of ${wanted} replicas are available`,
    };
  };
}

function count(object: Counted, field: string): number {
  return Number(object.status?.[field] ?? 0);
}

function condition(object: Counted, type: string) {
  return object.status?.conditions?.find((c) => c.type === type && c.status === "True");
}
