import type { DeepReadonly } from "#base";
import type { ApiObject, Event, Pod } from "#kinds";

/** What is wrong, by a stable name. */
export type CauseCode =
  | "absent"
  | "admission-refused"
  | "api-service-unavailable"
  | "backend-missing"
  | "claim-pending"
  | "config-missing"
  | "container-config"
  | "crash-loop"
  | "deleting"
  | "evicted"
  | "finalizer"
  | "hook-failed"
  | "host-port-conflict"
  | "image"
  | "init-container"
  | "invalid-command"
  | "invalid-object"
  | "job-failed"
  | "liveness-probe"
  | "no-endpoints"
  | "no-nodes"
  | "node-down"
  | "out-of-memory"
  | "paused"
  | "pod-failed"
  | "quota"
  | "readiness-gate"
  | "readiness-probe"
  | "rollout-deadline"
  | "sandbox"
  | "scheduling-gated"
  | "service-account"
  | "startup-probe"
  | "taint"
  | "unhealthy-condition"
  | "unschedulable"
  | "volume"
  | "waiting"
  | "webhook";

export interface About {
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** One reason for which an object is not what it should be. */
export interface Cause {
  readonly code: CauseCode;
  /** One sentence for a person: what is wrong, where, and with what. */
  readonly sentence: string;
  /** What shows it: states, conditions, events, log lines; one line each. */
  readonly evidence: readonly string[];
  /** The object at which it shows. */
  readonly about: About;
  /** Whether waiting can mend it: a slow start can end, a name that is wrong stays wrong. */
  readonly mends: "never" | "maybe";
}

export interface Diagnosis {
  readonly about: About;
  readonly ready: boolean;
  /** The most telling first. Empty: nothing is wrong, or nothing has shown yet. */
  readonly causes: readonly Cause[];
  /** How far it is, in one clause: `1 of 3 replicas are available`. */
  readonly state: string;
}

export type ReadonlyPod = DeepReadonly<Pod>;
export type ReadonlyEvent = DeepReadonly<Event>;
export type ReadonlyObject = DeepReadonly<ApiObject>;

/** All that a diagnosis looks at. It is taken at one moment, so that diagnosing is a function. */
export interface Evidence {
  readonly object: ReadonlyObject;
  /** Objects that it is made of or leans on: ReplicaSets, Jobs, claims, nodes, slices, … */
  readonly related: readonly ReadonlyObject[];
  readonly pods: readonly ReadonlyPod[];
  /** Of the object, its pods and what is between, oldest first. */
  readonly events: readonly ReadonlyEvent[];
  /** Last lines of containers that failed, by `<pod>/<container>`. */
  readonly logs: ReadonlyMap<string, readonly string[]>;
}

export function aboutOf(object: ReadonlyObject | ReadonlyPod, kind?: string): About {
  const { namespace, name } = object.metadata;
  return { kind: object.kind ?? kind ?? "Pod", ...(namespace ? { namespace } : {}), name };
}

/** Events about an object, the newest last. */
export function eventsOf(evidence: Pick<Evidence, "events">, about: About): ReadonlyEvent[] {
  return evidence.events.filter(({ involvedObject: { kind, name } }) => kind === about.kind && name === about.name);
}

/** The newest event of the object with one of the reasons. */
export function lastEvent(
  evidence: Pick<Evidence, "events">,
  about: About,
  ...reasons: readonly string[]
): ReadonlyEvent | undefined {
  return eventsOf(evidence, about).findLast(({ reason }) => reasons.includes(reason ?? ""));
}

/** `event Warning Unhealthy (x3): Readiness probe failed: …` */
export function eventLine(event: ReadonlyEvent): string {
  const count = event.series?.count ?? event.count ?? 1;
  return `event ${event.type} ${event.reason}${count > 1 ? ` (x${count})` : ""}: ${oneLine(event.message ?? "")}`;
}

export function conditionLine(condition: {
  readonly type: string;
  readonly status: string;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}): string {
  const { type, status, reason, message } = condition;
  return `condition ${type}=${status}${reason ? ` (${reason})` : ""}${message ? `: ${oneLine(message)}` : ""}`;
}

export function relatedOf(evidence: Evidence, kind: string): readonly ReadonlyObject[] {
  return evidence.related.filter((object) => object.kind === kind);
}

export const oneLine = (text: string): string => text.trim().replace(/\s*\n\s*/g, " ");

/** `a, b and c` */
export function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
