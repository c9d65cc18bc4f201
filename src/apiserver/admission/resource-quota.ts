import type { Clock, DeepReadonly } from "#base";
import {
  addUsage,
  type ApiObject,
  canonicalQuantity,
  compareQuantity,
  type Container,
  type Pod,
  quotaCounts,
  quotaMatches,
  quotaUsage,
  type ResourceQuota,
  resources,
  subtractQuantity,
  type Usage,
} from "#kinds";
import type { AdmissionAttributes, AdmissionPlugin, Reader } from "../ports.ts";
import { isAbout, objectOf, oldOf, refuse } from "./support.ts";

type Quota = DeepReadonly<ResourceQuota>;

export interface ResourceQuotaDeps {
  readonly reader: Reader;
  readonly clock: Clock;
  /** Writes `status.used`; false when the quota was changed since it was read. */
  charge(quota: Quota, used: Usage): Promise<boolean>;
}

/** Tries on quotas that the controller changes meanwhile. */
const TRIES = 20;
/** Answered and not stored, or never counted. */
const IGNORED = new Set([
  "/bindings",
  "/componentstatuses",
  "/events",
  "events.k8s.io/events",
  "authentication.k8s.io/tokenreviews",
  "authentication.k8s.io/selfsubjectreviews",
  "authorization.k8s.io/subjectaccessreviews",
  "authorization.k8s.io/selfsubjectaccessreviews",
  "authorization.k8s.io/localsubjectaccessreviews",
  "authorization.k8s.io/selfsubjectrulesreviews",
]);

/**
 * Refuses what would use more than the quotas of a namespace allow, and charges what it lets in before it is written. Runs last:
 * nothing may refuse after it. Calls of one namespace go one after the other.
 * @see https://kubernetes.io/docs/concepts/policy/resource-quotas/
 */
export function createResourceQuotaAdmission(deps: ResourceQuotaDeps): AdmissionPlugin {
  const busy = new Map<string, Promise<void>>();
  return {
    name: "ResourceQuota",
    handles: (attributes) => attributes.namespace !== "" && counts(attributes),
    async validate(attributes) {
      const { namespace } = attributes;
      if (deps.reader.list(resources.resourceQuotas, namespace).length === 0) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const before = busy.get(namespace);
      busy.set(namespace, promise);
      try {
        await before;
        await chargeAll(deps, attributes);
      } finally {
        if (busy.get(namespace) === promise) busy.delete(namespace);
        resolve();
      }
    },
  };
}

function counts(attributes: AdmissionAttributes): boolean {
  const { operation, kind, subresource } = attributes;
  if (IGNORED.has(`${kind.group}/${kind.resource}`)) return false;
  if (operation === "CREATE") return subresource === "";
  if (operation !== "UPDATE") return false;
  if (isAbout(attributes, resources.services) || isAbout(attributes, resources.persistentVolumeClaims)) return true;
  if (isAbout(attributes, resources.pods, "resize")) return true;
  return isAbout(attributes, resources.pods) && deadlineAppeared(attributes);
}

/** A pod that gets a deadline moves to the quotas of terminating ones. */
const deadlineAppeared = (attributes: AdmissionAttributes): boolean =>
  (objectOf<Pod>(attributes).spec.activeDeadlineSeconds === undefined) !==
  (oldOf<Pod>(attributes).spec.activeDeadlineSeconds === undefined);

async function chargeAll(deps: ResourceQuotaDeps, attributes: AdmissionAttributes): Promise<void> {
  let open: ReadonlySet<string> | undefined;
  for (let tries = 1; ; tries++) {
    const quotas = deps.reader
      .list(resources.resourceQuotas, attributes.namespace)
      .filter(({ metadata }) => !open || open.has(metadata.name!));
    const charges = quotas.flatMap((quota) => chargeOf(quota, attributes, deps.clock.now()) ?? []);
    if (attributes.dryRun) return;
    const failed = new Set<string>();
    for (const { quota, used } of charges) if (!(await deps.charge(quota, used))) failed.add(quota.metadata.name!);
    if (failed.size === 0) return;
    if (tries === TRIES)
      throw refuse(
        attributes,
        `status of quota ${[...failed].join(",")} could not be updated: it changes all the time`,
      );
    open = failed;
  }
}

/** What a quota's use becomes; undefined where this call is nothing to it. @throws StatusError 403 beyond its limits */
function chargeOf(
  quota: Quota,
  attributes: AdmissionAttributes,
  now: number,
): { quota: Quota; used: Usage } | undefined {
  const { kind } = attributes;
  const object = attributes.object as ApiObject;
  const hard = quota.status?.hard ?? {};
  const names = Object.keys(hard).filter((name) => quotaCounts(kind, name));
  if (names.length === 0 || !quotaMatches(quota, kind, object)) return undefined;
  if (isAbout(attributes, resources.pods) || isAbout(attributes, resources.pods, "resize"))
    demandAmounts(quota, names, attributes);
  const current = quota.status?.used ?? {};
  if (names.some((name) => current[name] === undefined))
    throw refuse(attributes, `status unknown for quota: ${quota.metadata.name}, resources: ${names.sort().join(",")}`);
  const before =
    attributes.old && quotaMatches(quota, kind, attributes.old) ? quotaUsage(kind, attributes.old, now) : {};
  const usage = quotaUsage(kind, object, now);
  const requested = more(usage, before, names);
  if (Object.keys(requested).length === 0) return undefined;
  const used = addUsage({ ...current }, requested);
  const exceeded = Object.keys(requested).filter((name) => compareQuantity(used[name]!, hard[name]!) > 0);
  if (exceeded.length > 0)
    throw refuse(
      attributes,
      `exceeded quota: ${quota.metadata.name}, requested: ${listed(requested, exceeded)}, used: ${listed(current, exceeded)}, limited: ${listed(hard, exceeded)}`,
    );
  return { quota, used };
}

/** The amounts above what is used already. */
function more(usage: Usage, before: Usage, names: readonly string[]): Usage {
  const result: Usage = {};
  for (const name of names) {
    const amount = usage[name];
    if (amount === undefined) continue;
    const difference = subtractQuantity(amount, before[name] ?? "0");
    if (compareQuantity(difference, "0") > 0) result[name] = difference;
  }
  return result;
}

const listed = (amounts: Readonly<Usage>, names: readonly string[]) =>
  [...names]
    .sort()
    .map((name) => `${name}=${canonicalQuantity(amounts[name] ?? "0")}`)
    .join(",");

/** A quota of CPU or memory needs every container to say how much of it. @throws StatusError 403 */
function demandAmounts(quota: Quota, names: readonly string[], attributes: AdmissionAttributes): void {
  const { spec } = objectOf<Pod>(attributes);
  if (Object.keys({ ...spec.resources?.requests, ...spec.resources?.limits }).length > 0) return;
  const demanded = names.filter((name) => /^((requests|limits)\.)?(cpu|memory)$/.test(name)).sort();
  const missing = demanded.flatMap((name) => {
    const without = [...spec.containers, ...(spec.initContainers ?? [])]
      .filter((container) => !says(container, name))
      .map((container) => container.name);
    return without.length > 0 ? [`${name} for: ${[...new Set(without)].sort().join(",")}`] : [];
  });
  if (missing.length > 0)
    throw refuse(attributes, `failed quota: ${quota.metadata.name}: must specify ${missing.join("; ")}`);
}

function says({ resources: own }: Container, name: string): boolean {
  const [, kind = "requests", what = ""] = /^(?:(requests|limits)\.)?(.*)$/.exec(name) ?? [];
  return own?.[kind as "requests" | "limits"]?.[what] !== undefined;
}
