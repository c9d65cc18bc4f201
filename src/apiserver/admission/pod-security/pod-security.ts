import type { DeepReadonly } from "#base";
import { type CronJob, invalid, type Namespace, type Pod, type PodTemplateSpec, resources } from "#kinds";
import type { AdmissionAttributes, AdmissionPlugin, Reader } from "../../ports.ts";
import { isAbout, objectOf, oldOf, refuse } from "../support.ts";
import type { Subject } from "./check.ts";
import { detailsText, evaluate, reasonsText } from "./evaluate.ts";
import { isStricter, type LevelVersion, policyOf, policyText } from "./policy.ts";

/** At most so many pods are looked at when a namespace becomes stricter. */
const MAX_PODS = 3000;
const UNCHECKED = new Set(["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"]);
const TEMPLATED: Readonly<Record<string, (object: unknown) => PodTemplateSpec | undefined>> = {
  "/podtemplates": (object) => (object as { template?: PodTemplateSpec }).template,
  "/replicationcontrollers": templateOf,
  "apps/deployments": templateOf,
  "apps/replicasets": templateOf,
  "apps/statefulsets": templateOf,
  "apps/daemonsets": templateOf,
  "batch/jobs": templateOf,
  "batch/cronjobs": (object) => (object as CronJob).spec?.jobTemplate?.spec?.template,
};

function templateOf(object: unknown): PodTemplateSpec | undefined {
  return (object as { spec?: { template?: PodTemplateSpec } }).spec?.template;
}

/**
 * Holds pods against the level that their namespace's labels ask for, and warns of workloads whose pods would be refused.
 * @see https://kubernetes.io/docs/concepts/security/pod-security-admission/
 */
export function createPodSecurity({ reader }: { reader: Reader }): AdmissionPlugin {
  return {
    name: "PodSecurity",
    handles: (attributes) => {
      const { operation, kind, subresource } = attributes;
      if (operation !== "CREATE" && operation !== "UPDATE") return false;
      if (kind.group === "" && kind.resource === "pods") return !UNCHECKED.has(subresource);
      return (
        isAbout(attributes, resources.namespaces) ||
        (subresource === "" && TEMPLATED[`${kind.group}/${kind.resource}`] !== undefined)
      );
    },
    validate(attributes) {
      if (isAbout(attributes, resources.namespaces)) return checkNamespace(attributes, reader);
      const labels = reader.get(resources.namespaces, undefined, attributes.namespace)?.metadata.labels;
      const { policy } = policyOf(labels);
      const isPod = attributes.kind.resource === "pods";
      const subject = isPod ? changedPod(attributes) : templateSubject(attributes);
      if (!subject) return;
      if (isPod) {
        const violations = evaluate(policy.enforce, subject);
        if (violations.length > 0)
          throw refuse(attributes, `violates PodSecurity "${policyText(policy.enforce)}": ${detailsText(violations)}`);
      }
      const warned = evaluate(policy.warn, subject);
      if (warned.length > 0)
        attributes.warn(`would violate PodSecurity "${policyText(policy.warn)}": ${detailsText(warned)}`);
    },
  };
}

const subjectOf = ({ metadata, spec }: DeepReadonly<PodTemplateSpec | Pod>): Subject | undefined =>
  spec && { annotations: metadata?.annotations ?? {}, spec };

function templateSubject({ kind, object }: AdmissionAttributes): Subject | undefined {
  const template = TEMPLATED[`${kind.group}/${kind.resource}`]!(object);
  return template && subjectOf(template);
}

/** The pod; undefined when an update changes no image and adds no container. */
function changedPod(attributes: AdmissionAttributes): Subject | undefined {
  const pod = objectOf<Pod>(attributes);
  if (attributes.operation === "CREATE") return subjectOf(pod);
  const old = oldOf<Pod>(attributes);
  const images = ({ spec }: Pod) =>
    JSON.stringify([spec.containers.map(({ image }) => image), (spec.initContainers ?? []).map(({ image }) => image)]);
  const before = new Map((old.spec.ephemeralContainers ?? []).map(({ name, image }) => [name, image]));
  const added = (pod.spec.ephemeralContainers ?? []).some(
    ({ name, image }) => !before.has(name) || before.get(name) !== image,
  );
  return added || images(pod) !== images(old) ? subjectOf(pod) : undefined;
}

function checkNamespace(attributes: AdmissionAttributes, reader: Reader): void {
  const { kind, operation } = attributes;
  const namespace = objectOf<Namespace>(attributes);
  const { policy, errors } = policyOf(namespace.metadata?.labels);
  const { name = "" } = namespace.metadata ?? {};
  if (operation === "CREATE") {
    if (errors.length > 0) throw invalid(kind, name, errors);
    return;
  }
  const before = policyOf(oldOf<Namespace>(attributes).metadata?.labels);
  if (errors.length > 0 && JSON.stringify(errors) !== JSON.stringify(before.errors)) throw invalid(kind, name, errors);
  const { enforce } = policy;
  const old = before.policy.enforce;
  if (policyText(enforce) === policyText(old) || enforce.level === "privileged") return;
  if (enforce.version === old.version && !isStricter(enforce.level, old.level)) return;
  for (const text of podWarnings(reader.list(resources.pods, name), name, enforce)) attributes.warn(text);
}

/** Which pods that are there would be refused now. */
function podWarnings(all: readonly Pod[], namespace: string, enforce: LevelVersion): string[] {
  const pods = oneOfEachFirst(all).slice(0, MAX_PODS);
  const found = new Map<string, string[]>();
  for (const pod of pods) {
    const violations = evaluate(enforce, subjectOf(pod)!);
    if (violations.length === 0) continue;
    const reasons = reasonsText(violations);
    found.set(reasons, [...(found.get(reasons) ?? []), pod.metadata.name!]);
  }
  const lines = [...found].map(([reasons, names]) => {
    const others = names.length - 1;
    const first = names.sort()[0];
    const more = others === 0 ? "" : ` (and ${others} other ${others === 1 ? "pod" : "pods"})`;
    return `${first}${more}: ${reasons}`;
  });
  return [
    ...(pods.length < all.length
      ? [`new PodSecurity enforce level only checked against the first ${pods.length} of ${all.length} existing pods`]
      : []),
    ...(lines.length > 0
      ? [`existing pods in namespace "${namespace}" violate the new PodSecurity enforce level "${policyText(enforce)}"`]
      : []),
    ...lines.sort(),
  ];
}

/** Pods of one controller are alike: the others come last. */
function oneOfEachFirst(pods: readonly Pod[]): Pod[] {
  const seen = new Set<string>();
  const repeated: Pod[] = [];
  const first = pods.filter((pod) => {
    const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller)?.uid;
    if (owner === undefined || !seen.has(owner)) {
      if (owner !== undefined) seen.add(owner);
      return true;
    }
    repeated.push(pod);
    return false;
  });
  return [...first, ...repeated];
}
