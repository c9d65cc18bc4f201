import { isPodReady, type Pod } from "#kinds";
import { finalizerCause, namespaceCause } from "./deletion.ts";
import {
  aboutOf,
  type Cause,
  conditionLine,
  type Diagnosis,
  type Evidence,
  eventLine,
  eventsOf,
  oneLine,
} from "./evidence.ts";
import { podCauses } from "./pod.ts";
import { readinessOf } from "./readiness.ts";
import { ingressCauses, serviceCauses } from "./service.ts";
import { claimCause } from "./storage.ts";
import { jobCauses, workloadCauses } from "./workload.ts";

/** What is wrong with an object, from all that was seen of it. Pure: the same evidence gives the same diagnosis. */
export function diagnose(evidence: Evidence): Diagnosis {
  const { object } = evidence;
  const about = aboutOf(object);
  const readiness = readinessOf(object as never);
  const deleting = object.kind === "Namespace" ? namespaceCause(object) : finalizerCause(object);
  const found = deleting ? [deleting] : (RULES[object.kind] ?? generalCauses)(evidence);
  // what a service lacks does not show in its own status, and a claim may wait for good reason
  const unready = !readiness.ready || LOOKED_AT_ANYWAY.has(object.kind) || deleting !== undefined;
  const causes = unready ? found : [];
  return { about, ready: readiness.ready && causes.length === 0, causes, state: readiness.why };
}

const LOOKED_AT_ANYWAY = new Set(["Service", "Ingress", "PersistentVolumeClaim"]);

const RULES: Readonly<Record<string, (evidence: Evidence) => Cause[]>> = {
  Pod: (evidence) => {
    const pod = evidence.object as unknown as Pod;
    return isPodReady(pod) || pod.status?.phase === "Succeeded" ? [] : podCauses(evidence, pod);
  },
  Deployment: workloadCauses,
  ReplicaSet: workloadCauses,
  ReplicationController: workloadCauses,
  StatefulSet: workloadCauses,
  DaemonSet: workloadCauses,
  Job: jobCauses,
  Service: serviceCauses,
  Ingress: ingressCauses,
  PersistentVolumeClaim: (evidence) => [claimCause(evidence, evidence.object)].filter((cause) => cause !== undefined),
};

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

/** Conditions that are True when all is well, in kinds of any kind. */
const GOOD = [
  "Ready",
  "Available",
  "Established",
  "NamesAccepted",
  "ScalingActive",
  "AbleToScale",
  "Complete",
  "Synced",
];

/** For all other kinds: a condition that says no, else the last warning. */
function generalCauses(evidence: Evidence): Cause[] {
  const about = aboutOf(evidence.object);
  const { conditions = [] } = (evidence.object.status ?? {}) as { conditions?: readonly Condition[] };
  const bad = Array.isArray(conditions)
    ? conditions.filter(({ type, status }) => GOOD.includes(type) && status !== "True" && status !== undefined)
    : [];
  const code =
    evidence.object.kind === "APIService"
      ? "api-service-unavailable"
      : evidence.object.kind === "Node"
        ? "node-down"
        : "unhealthy-condition";
  const [first] = bad;
  if (first)
    return [
      {
        code,
        sentence: `${about.kind} "${about.name}" is not ${first.type}: ${first.message || first.reason || "it does not say why"}`,
        evidence: bad.map(conditionLine),
        about,
        mends: "maybe",
      },
    ];
  const warning = eventsOf(evidence, about).findLast(({ type }) => type === "Warning");
  if (!warning) return [];
  const sentence = `${about.kind} "${about.name}": ${oneLine(warning.message ?? warning.reason ?? "")}`;
  return [{ code: "unhealthy-condition", sentence, evidence: [eventLine(warning)], about, mends: "maybe" }];
}

/** The text of `slim why`: the cause in one sentence, the evidence below it. */
export function renderDiagnosis({ about, ready, causes, state }: Diagnosis): string {
  const where = about.namespace ? ` in namespace ${about.namespace}` : "";
  const what = `${about.kind} "${about.name}"${where}`;
  const [first, ...others] = causes;
  if (!first)
    return ready
      ? `${what} is as it should be: ${state}.\n`
      : `${what} is not ready (${state}), and nothing tells why yet.\n`;
  const lines = [`${capital(first.sentence)}.`, ...first.evidence.map((line) => `  ${line}`)];
  for (const cause of others) {
    if (first.sentence.includes(cause.sentence)) continue;
    lines.push(`Also: ${cause.sentence}.`, ...cause.evidence.map((line) => `  ${line}`));
  }
  return `${lines.join("\n")}\n`;
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
