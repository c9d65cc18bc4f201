import {
  aboutOf,
  type Cause,
  type CauseCode,
  conditionLine,
  type Evidence,
  eventLine,
  eventsOf,
  oneLine,
  type ReadonlyEvent,
  type ReadonlyPod,
} from "./evidence.ts";
import { podCauses } from "./pod.ts";

interface Workload {
  readonly spec?: { readonly replicas?: number; readonly paused?: boolean; readonly suspend?: boolean };
  readonly status?: Readonly<Record<string, unknown>> & { readonly conditions?: readonly Condition[] };
}
interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

/** Why a controller's pods are not all there and ready. */
export function workloadCauses(evidence: Evidence): Cause[] {
  const { object } = evidence;
  const about = aboutOf(object);
  const { spec = {}, status = {} } = object as unknown as Workload;
  const causes = [...refusedCauses(evidence), ...causesOfPods(evidence)];
  if (object.kind === "DaemonSet" && evidence.pods.length === 0 && causes.length === 0)
    causes.push(...noNodes(evidence));
  const late = status.conditions?.find(
    (one) => one.type === "Progressing" && one.reason === "ProgressDeadlineExceeded",
  );
  if (late) {
    const [first] = causes;
    const seconds = (spec as { progressDeadlineSeconds?: number }).progressDeadlineSeconds ?? 600;
    const why = first ? `: ${first.sentence}` : "";
    const sentence = `the rollout of ${about.kind} "${about.name}" made no progress for ${seconds} s${why}`;
    return [
      {
        code: "rollout-deadline",
        sentence,
        evidence: [conditionLine(late), ...(first?.evidence ?? [])],
        about,
        mends: "never",
      },
      ...causes,
    ];
  }
  if (causes.length === 0 && spec.paused)
    causes.push({
      code: "paused",
      sentence: `the rollout of ${about.kind} "${about.name}" is paused`,
      evidence: ["spec.paused is true"],
      about,
      mends: "maybe",
    });
  return causes;
}

/** Pods that could not even be created: what the controllers on the way say. */
function refusedCauses(evidence: Evidence): Cause[] {
  const makers = [evidence.object, ...evidence.related.filter((one) => ["ReplicaSet", "Job"].includes(one.kind))];
  const refusals = makers.flatMap((maker) => {
    const about = aboutOf(maker);
    const events = eventsOf(evidence, about);
    const failed = events.findLast(({ reason }) => reason === "FailedCreate");
    const created = events.findLast(({ reason }) => reason === "SuccessfulCreate");
    // what was refused once and then created is over
    if (!failed || (created && timeOf(created) > timeOf(failed))) return [];
    return [refusal(failed, about)];
  });
  return refusals.slice(-1);
}

const timeOf = (event: ReadonlyEvent) =>
  Date.parse(event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp ?? "") ||
  0;

/** Classifies what the API server said to a controller that wanted to create a pod. */
function refusal(event: ReadonlyEvent, about: Cause["about"]): Cause {
  const message = oneLine(event.message ?? "");
  const why = message
    .replace(/^Error creating: /, "")
    .replace(/^.*? is forbidden: /, "")
    .replace(/^create Pod \S+ in StatefulSet \S+ failed error: /, "");
  const whose = `${about.kind} "${about.name}"`;
  const [code, sentence, mends] = ((): [CauseCode, string, Cause["mends"]] => {
    const quota = /exceeded quota: ([^,]+), (.*)/.exec(message);
    if (quota)
      return ["quota", `the ResourceQuota "${quota[1]}" does not let ${whose} create more pods: ${quota[2]}`, "maybe"];
    const mustSpecify = /failed quota: ([^:]+): (.*)/.exec(message);
    if (mustSpecify)
      return [
        "quota",
        `the ResourceQuota "${mustSpecify[1]}" refuses the pods of ${whose}: ${mustSpecify[2]}`,
        "never",
      ];
    const account =
      /service ?account "?([^"\s]+?)"? (?:not found|was not found)|error looking up service account (\S+): /i.exec(
        message,
      );
    if (account) {
      const name = (account[1] ?? account[2] ?? "").replace(/^.*\//, "");
      return [
        "service-account",
        `the pods of ${whose} run as the ServiceAccount "${name}", which does not exist`,
        "maybe",
      ];
    }
    const denied = /admission webhook "([^"]+)" denied the request:? ?(.*)/.exec(message);
    if (denied)
      return [
        "webhook",
        `the admission webhook "${denied[1]}" refuses the pods of ${whose}${denied[2] ? `: ${denied[2]}` : ""}`,
        "never",
      ];
    const unreachable = /failed calling webhook "([^"]+)": (.*)/.exec(message);
    if (unreachable)
      return [
        "webhook",
        `the admission webhook "${unreachable[1]}", which must allow the pods of ${whose}, can't be called: ${unreachable[2]}`,
        "maybe",
      ];
    if (/is invalid: /.test(message))
      return ["invalid-object", `the pods of ${whose} are not valid: ${why.replace(/^.*? is invalid: /, "")}`, "never"];
    return ["admission-refused", `the API server refuses the pods of ${whose}: ${why}`, "maybe"];
  })();
  return { code, sentence, evidence: [eventLine(event)], about, mends };
}

/** Causes of the pods; those that several pods share are told once. */
export function causesOfPods(evidence: Evidence): Cause[] {
  const seen = new Set<string>();
  const causes: Cause[] = [];
  for (const pod of newestFirst(evidence.pods)) {
    for (const cause of podCauses(evidence, pod)) {
      const key = `${cause.code} ${cause.sentence.replaceAll(pod.metadata.name, "")}`;
      if (seen.has(key)) continue;
      seen.add(key);
      causes.push(cause);
    }
  }
  // pods on their way out explain nothing while others are wrong
  const alive = causes.filter(({ code }) => code !== "deleting");
  return alive.length > 0 ? alive : causes;
}

const newestFirst = (pods: readonly ReadonlyPod[]) =>
  [...pods].sort((a, b) =>
    String(b.metadata.creationTimestamp ?? "").localeCompare(String(a.metadata.creationTimestamp ?? "")),
  );

/** A DaemonSet without pods: which nodes it means is in its template. */
function noNodes(evidence: Evidence): Cause[] {
  const { object } = evidence;
  const about = aboutOf(object);
  const template = (object.spec as { template?: { spec?: { nodeSelector?: Record<string, string> } } } | undefined)
    ?.template;
  const selector = Object.entries(template?.spec?.nodeSelector ?? {}).map(([key, value]) => `${key}=${value}`);
  const wanted = Number(
    (object.status as { desiredNumberScheduled?: number } | undefined)?.desiredNumberScheduled ?? 0,
  );
  if (wanted > 0) return [];
  const why =
    selector.length > 0 ? `no node has the labels ${selector.join(",")}` : "no node is there that its pods tolerate";
  return [
    {
      code: "no-nodes",
      sentence: `${about.kind} "${about.name}" runs nowhere: ${why}`,
      evidence: ["status.desiredNumberScheduled is 0"],
      about,
      mends: "maybe",
    },
  ];
}

/** Why a Job is not complete. */
export function jobCauses(evidence: Evidence): Cause[] {
  const { object } = evidence;
  const about = aboutOf(object);
  const { spec = {}, status = {} } = object as unknown as Workload;
  const failed = status.conditions?.find(
    (one) => (one.type === "Failed" || one.type === "FailureTarget") && one.status === "True",
  );
  const causes = [...refusedCauses(evidence), ...causesOfPods(evidence)];
  if (failed) {
    const [first] = causes;
    const why = first ? `${failed.message ?? failed.reason}: ${first.sentence}` : (failed.message ?? failed.reason);
    const sentence = `the Job "${about.name}" failed: ${why}`;
    return [
      {
        code: "job-failed",
        sentence,
        evidence: [conditionLine(failed), ...(first?.evidence ?? [])],
        about,
        mends: "never",
      },
      ...causes,
    ];
  }
  if (spec.suspend)
    return [
      {
        code: "paused",
        sentence: `the Job "${about.name}" is suspended`,
        evidence: ["spec.suspend is true"],
        about,
        mends: "maybe",
      },
    ];
  return causes;
}
