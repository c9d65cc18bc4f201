import { type DeepReadonly, deepEqual } from "#base";
import {
  type EndpointAddress,
  type Endpoints,
  type EndpointSubset,
  isPodReady,
  isPodTerminal,
  type Pod,
  resources,
  type Service,
} from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { copyOf, fromCache, ignoreNotFound, isNamespaceTerminating, keyOf } from "../runtime/objects.ts";
import {
  byNamespace,
  HEADLESS,
  isHeadless,
  onPodChange,
  selectedPods,
  selecting,
  TRIGGER_TIME,
} from "./endpointslice.ts";
import { addressesOf, addressTypesOf, createTriggerTimes, isCandidate, portsFor } from "./plan.ts";

type P = DeepReadonly<Pod>;
type S = DeepReadonly<Service>;

const MANAGED_BY = "endpoints.kubernetes.io/managed-by";
const CAPACITY = "endpoints.kubernetes.io/over-capacity";
const LEADER = "control-plane.alpha.kubernetes.io/leader";
/** Addresses that an Endpoints object holds at most. */
const MAX_ADDRESSES = 1000;
const LARGE = 50;
const BATCH = 200;

/** The older form of EndpointSlices, one object a Service. https://kubernetes.io/docs/concepts/services-networking/service/#endpoints */
export function createEndpointsController(deps: ControllerDeps): Controller {
  const { client } = deps;
  const services = deps.informers.for(resources.services);
  const pods = deps.informers.for(resources.pods);
  const endpoints = deps.informers.for(resources.endpoints);
  const sizes = new Map<string, number>();
  const triggers = createTriggerTimes();
  byNamespace(services);
  byNamespace(pods);

  return createController(deps, {
    name: "endpoints",
    watch({ on, enqueue, enqueueAfter }) {
      const queue = (key: string) => ((sizes.get(key) ?? 0) >= LARGE ? enqueueAfter(key, BATCH) : enqueue(key));
      const serviceChanged = (service: S) => enqueue(keyOf(service));
      on(services, { add: serviceChanged, update: serviceChanged, delete: serviceChanged });
      on(
        pods,
        onPodChange((pod) => {
          for (const service of selecting(services, pod)) queue(keyOf(service));
        }),
      );
      on(endpoints, { delete: (object) => enqueue(keyOf(object)) });
    },
    async reconcile(key) {
      const service = fromCache(services, key);
      const found = fromCache(endpoints, key);
      const at = (object: DeepReadonly<Endpoints>) => ({ namespace: object.metadata.namespace });
      if (!service) {
        sizes.delete(key);
        triggers.forget(key);
        if (!found || found.metadata.labels?.[MANAGED_BY] === undefined || found.metadata.annotations?.[LEADER]) return;
        await ignoreNotFound(client.delete(resources.endpoints, found.metadata.name, at(found)));
        return;
      }
      if (service.spec?.type === "ExternalName" || !service.spec?.selector || service.metadata.deletionTimestamp)
        return;
      const selected = selectedPods(pods, service);
      sizes.set(key, selected.length);
      const trigger = triggers.of(key, service, selected);
      const { subsets, truncated } = subsetsOf(service, selected);
      const labels = {
        ...service.metadata.labels,
        ...(isHeadless(service) ? { [HEADLESS]: "" } : {}),
        [MANAGED_BY]: "endpoint-controller",
      };
      const over = found?.metadata.annotations?.[CAPACITY] !== undefined;
      if (
        found &&
        deepEqual(found.subsets ?? [], subsets) &&
        deepEqual(found.metadata.labels, labels) &&
        over === truncated
      )
        return;
      const annotations = {
        ...(trigger ? { [TRIGGER_TIME]: trigger } : {}),
        ...(truncated ? { [CAPACITY]: "truncated" } : {}),
      };
      const { name, namespace } = service.metadata;
      const metadata = { name, ...(namespace ? { namespace } : {}), labels, annotations };
      try {
        if (!found)
          await client.create(resources.endpoints, {
            apiVersion: "v1",
            kind: "Endpoints",
            metadata,
            ...filled(subsets),
          });
        else {
          const copy = copyOf(resources.endpoints, found);
          const { [CAPACITY]: _, [TRIGGER_TIME]: _before, ...others } = copy.metadata.annotations ?? {};
          const { subsets: __, ...rest } = copy;
          await client.update(resources.endpoints, {
            ...rest,
            metadata: { ...copy.metadata, labels, annotations: { ...others, ...annotations } },
            ...filled(subsets),
          });
        }
      } catch (error) {
        if (!isNamespaceTerminating(error)) throw error;
      }
    },
  });
}

const filled = (subsets: EndpointSubset[]): { subsets?: EndpointSubset[] } => (subsets.length ? { subsets } : {});

/** Addresses grouped by their ports; ready ones first to be kept when there are too many. */
export function subsetsOf(service: S, pods: readonly P[]): { subsets: EndpointSubset[]; truncated: boolean } {
  const notReady = Boolean(service.spec?.publishNotReadyAddresses);
  const type = addressTypesOf(service)[0]!;
  const usable = pods.filter(
    (pod) => isCandidate(pod) && !isPodTerminal(pod) && (notReady || !pod.metadata.deletionTimestamp),
  );
  const isReady = (pod: P) => notReady || isPodReady(pod);
  const ranked = [...usable.filter(isReady), ...usable.filter((pod) => !isReady(pod))];
  const groups = new Map<
    string,
    { ready: EndpointAddress[]; waiting: EndpointAddress[]; ports: EndpointSubset["ports"] }
  >();
  for (const pod of ranked.slice(0, MAX_ADDRESSES)) {
    const [ip] = addressesOf(pod, type);
    const ports = portsFor(service, pod).map(({ name, ...rest }) => ({
      ...(name ? { name } : {}),
      ...rest,
      port: rest.port!,
    }));
    if (!ip || (ports.length === 0 && !isHeadless(service))) continue;
    const key = JSON.stringify(ports);
    const group = groups.get(key) ?? { ready: [], waiting: [], ports };
    (isReady(pod) ? group.ready : group.waiting).push(addressOf(service, pod, ip));
    groups.set(key, group);
  }
  const subsets = [...groups.values()].map(({ ready, waiting, ports }) => ({
    ...(ready.length ? { addresses: ready.sort(byAddress) } : {}),
    ...(waiting.length ? { notReadyAddresses: waiting.sort(byAddress) } : {}),
    ...(ports?.length ? { ports } : {}),
  }));
  return { subsets, truncated: ranked.length > MAX_ADDRESSES };
}

function addressOf(service: S, pod: P, ip: string): EndpointAddress {
  const { namespace = "", name, uid = "" } = pod.metadata;
  const { hostname, subdomain, nodeName } = pod.spec;
  const named = hostname && subdomain === service.metadata.name;
  return {
    ip,
    ...(named ? { hostname } : {}),
    ...(nodeName ? { nodeName } : {}),
    targetRef: { kind: "Pod", namespace, name, uid },
  };
}

const byAddress = (a: EndpointAddress, b: EndpointAddress): number =>
  a.ip.localeCompare(b.ip, "en", { numeric: true }) || (a.targetRef?.uid ?? "").localeCompare(b.targetRef?.uid ?? "");
