import {
  canonicalQuantity,
  type Container,
  type LimitRange,
  type LimitRangeItem,
  type PersistentVolumeClaim,
  type Pod,
  podLimits,
  podRequests,
  quantityValue,
  resources,
} from "#kinds";
import type { AdmissionAttributes, AdmissionPlugin, Reader } from "../ports.ts";
import { aggregate, isAbout, objectOf, refuse } from "./support.ts";

type Amounts = Readonly<Record<string, string>>;
const ANNOTATION = "kubernetes.io/limit-ranger";

/**
 * Containers get the defaults of their namespace's LimitRanges, and they, pods and claims stay within the limits.
 * @see https://kubernetes.io/docs/concepts/policy/limit-range/
 */
export function createLimitRanger({ reader }: { reader: Reader }): AdmissionPlugin {
  const rangesOf = ({ namespace }: AdmissionAttributes) => reader.list(resources.limitRanges, namespace);
  return {
    name: "LimitRanger",
    handles: (attributes) =>
      !attributes.old?.metadata.deletionTimestamp &&
      ((attributes.operation === "CREATE" &&
        (isAbout(attributes, resources.pods) || isAbout(attributes, resources.persistentVolumeClaims))) ||
        (attributes.operation === "UPDATE" &&
          (isAbout(attributes, resources.pods, "resize") || isAbout(attributes, resources.persistentVolumeClaims)))),
    admit(attributes) {
      if (attributes.kind.resource !== "pods") return;
      for (const range of rangesOf(attributes)) setDefaults(objectOf<Pod>(attributes), range);
    },
    validate(attributes) {
      for (const range of rangesOf(attributes)) {
        const items = range.spec?.limits ?? [];
        const errors =
          attributes.kind.resource === "pods"
            ? items.flatMap((item) => podErrors(item, objectOf<Pod>(attributes)))
            : items.flatMap((item) => claimErrors(item, objectOf<PersistentVolumeClaim>(attributes)));
        if (errors.length > 0) throw refuse(attributes, aggregate(errors));
      }
    },
  };
}

function setDefaults(pod: Pod, range: LimitRange): void {
  const items = (range.spec?.limits ?? []).filter(({ type }) => type === "Container");
  const requests: Amounts = Object.assign({}, ...items.map((item) => item.defaultRequest));
  const limits: Amounts = Object.assign({}, ...items.map((item) => item.default));
  const set = [
    ...pod.spec.containers.flatMap((container) => fill(container, "container", requests, limits)),
    ...(pod.spec.initContainers ?? []).flatMap((container) => fill(container, "init container", requests, limits)),
  ];
  if (set.length === 0) return;
  pod.metadata.annotations = { ...pod.metadata.annotations, [ANNOTATION]: `LimitRanger plugin set: ${set.join("; ")}` };
}

/** Adds what a container does not say; gives what was added in words. */
function fill(container: Container, what: string, requests: Amounts, limits: Amounts): string[] {
  const added: string[] = [];
  const merge = (kind: "requests" | "limits", defaults: Amounts) => {
    const own = container.resources?.[kind] ?? {};
    const missing = Object.keys(defaults)
      .filter((name) => own[name] === undefined)
      .sort();
    if (missing.length === 0) return;
    const more = Object.fromEntries(missing.map((name) => [name, defaults[name]!]));
    container.resources = { ...container.resources, [kind]: { ...own, ...more } };
    added.push(`${missing.join(", ")} ${kind.slice(0, -1)} for ${what} ${container.name}`);
  };
  merge("requests", requests);
  merge("limits", limits);
  return added;
}

function podErrors(item: LimitRangeItem, pod: Pod): string[] {
  switch (item.type) {
    case "Container":
      return [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].flatMap(({ resources: own }) =>
        errorsOf(item, own?.requests ?? {}, own?.limits ?? {}),
      );
    case "Pod": {
      // the overhead of a runtime is not the user's doing
      const { overhead: _, ...spec } = pod.spec;
      const own = { ...pod, spec };
      return errorsOf(item, podRequests(own), podLimits(own));
    }
    default:
      return [];
  }
}

function errorsOf(item: LimitRangeItem, requests: Amounts, limits: Amounts): string[] {
  const { type } = item;
  return [
    ...each(item.min, (name, value) => tooSmall(type, name, value, requests, limits)),
    ...each(item.max, (name, value) => tooLarge(type, name, value, requests, limits)),
    ...each(item.maxLimitRequestRatio, (name, value) => tooLoose(type, name, value, requests, limits)),
  ];
}

function claimErrors(item: LimitRangeItem, claim: PersistentVolumeClaim): string[] {
  if (item.type !== "PersistentVolumeClaim") return [];
  const requests = claim.spec?.resources?.requests ?? {};
  return [
    ...each(item.min, (name, value) => tooSmall(item.type, name, value, requests, {})),
    ...each(item.max, (name, value) => {
      const bound = `maximum ${name} usage per ${item.type} is ${canonicalQuantity(value)}`;
      const request = requests[name];
      if (request === undefined) return `${bound}.  No request is specified`;
      return above(request, value) ? `${bound}, but request is ${canonicalQuantity(request)}` : undefined;
    }),
  ];
}

function each(bounds: Amounts | undefined, check: (name: string, value: string) => string | undefined): string[] {
  return Object.entries(bounds ?? {})
    .map(([name, value]) => check(name, value))
    .filter((error) => error !== undefined);
}

const above = (a: string, b: string) => quantityValue(a) > quantityValue(b);

function tooSmall(type: string, name: string, bound: string, requests: Amounts, limits: Amounts): string | undefined {
  const text = `minimum ${name} usage per ${type} is ${canonicalQuantity(bound)}`;
  const [request, limit] = [requests[name], limits[name]];
  if (request === undefined) return `${text}.  No request is specified`;
  if (above(bound, request)) return `${text}, but request is ${canonicalQuantity(request)}`;
  if (limit !== undefined && above(bound, limit)) return `${text}, but limit is ${canonicalQuantity(limit)}`;
  return undefined;
}

function tooLarge(type: string, name: string, bound: string, requests: Amounts, limits: Amounts): string | undefined {
  const text = `maximum ${name} usage per ${type} is ${canonicalQuantity(bound)}`;
  const [request, limit] = [requests[name], limits[name]];
  if (limit === undefined) return `${text}.  No limit is specified`;
  if (above(limit, bound)) return `${text}, but limit is ${canonicalQuantity(limit)}`;
  if (request !== undefined && above(request, bound)) return `${text}, but request is ${canonicalQuantity(request)}`;
  return undefined;
}

function tooLoose(type: string, name: string, bound: string, requests: Amounts, limits: Amounts): string | undefined {
  const text = `${name} max limit to request ratio per ${type} is ${canonicalQuantity(bound)}`;
  const [request, limit] = [quantityValue(requests[name]), quantityValue(limits[name])];
  if (request === 0) return `${text}, but no request is specified or request is 0`;
  if (limit === 0) return `${text}, but no limit is specified or limit is 0`;
  const ratio = limit / request;
  return ratio > quantityValue(bound) ? `${text}, but provided ratio is ${ratio.toFixed(6)}` : undefined;
}
