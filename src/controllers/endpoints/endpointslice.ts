import { type DeepReadonly, deepEqual } from "#base";
import type { Informer } from "#client";
import {
  controllerReference,
  type EndpointSlice,
  isPodReady,
  isPodTerminal,
  matchesLabels,
  type Pod,
  resources,
  type Service,
} from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { copyOf, fromCache, ignoreNotFound, isNamespaceTerminating, keyOf } from "../runtime/objects.ts";
import {
  type AddressType,
  addressTypesOf,
  createTriggerTimes,
  groupEndpoints,
  planSlices,
  slicePrefix,
} from "./plan.ts";

type P = DeepReadonly<Pod>;
type S = DeepReadonly<Service>;

export const SERVICE_NAME = "kubernetes.io/service-name";
export const MANAGED_BY = "endpointslice.kubernetes.io/managed-by";
export const HEADLESS = "service.kubernetes.io/headless";
export const TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time";
const MANAGER = "endpointslice-controller.k8s.io";
/** From this many pods on, changes of a service are gathered for BATCH milliseconds. */
const LARGE = 50;
const BATCH = 100;

/** Which pods are behind each Service. https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/ */
export function createEndpointSliceController(deps: ControllerDeps): Controller {
  const { client } = deps;
  const services = deps.informers.for(resources.services);
  const pods = deps.informers.for(resources.pods);
  const nodes = deps.informers.for(resources.nodes);
  const slices = deps.informers.for(resources.endpointSlices);
  const recorder = deps.recorder("endpoint-slice-controller");
  const sizes = new Map<string, number>();
  const triggers = createTriggerTimes();
  byNamespace(services);
  byNamespace(pods);
  slices.addIndex("service", ({ metadata: { namespace, labels = {} } }) =>
    labels[MANAGED_BY] === MANAGER && labels[SERVICE_NAME] ? [`${namespace}/${labels[SERVICE_NAME]}`] : [],
  );
  const zoneOf = (node: string) => nodes.get(undefined, node)?.metadata.labels?.["topology.kubernetes.io/zone"];

  async function apply(
    service: S,
    type: AddressType,
    selected: readonly P[],
    trigger: string | undefined,
  ): Promise<void> {
    const existing = slices.byIndex("service", keyOf(service)).filter(({ addressType }) => addressType === type);
    const live = existing.filter(({ metadata }) => !metadata.deletionTimestamp);
    const plan = planSlices(groupEndpoints(service, selected, type, zoneOf), live);
    const labels = labelsOf(service);
    const annotations = trigger ? { [TRIGGER_TIME]: trigger } : {};
    const { namespace } = service.metadata;
    for (const { ports, endpoints } of plan.create) {
      await client.create(resources.endpointSlices, {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: {
          generateName: slicePrefix(service.metadata.name),
          ...(namespace ? { namespace } : {}),
          labels,
          annotations,
          ownerReferences: [controllerReference(service, resources.services)],
        } as EndpointSlice["metadata"],
        addressType: type,
        endpoints: [...endpoints],
        ports: [...ports],
      });
    }
    const updates = new Map(plan.update.map((update) => [update.slice, update]));
    for (const slice of live) {
      if (plan.remove.includes(slice)) continue;
      const update = updates.get(slice);
      if (!update && deepEqual(slice.metadata.labels, labels)) continue;
      const copy = copyOf(resources.endpointSlices, slice);
      const { [TRIGGER_TIME]: _, ...others } = copy.metadata.annotations ?? {};
      const metadata = { ...copy.metadata, labels, annotations: { ...others, ...annotations } };
      await client.update(resources.endpointSlices, {
        ...copy,
        metadata,
        ...(update ? { endpoints: [...update.endpoints] } : {}),
        ...(update?.ports ? { ports: [...update.ports] } : {}),
      });
    }
    for (const { metadata } of plan.remove) {
      await ignoreNotFound(client.delete(resources.endpointSlices, metadata.name, { namespace }));
    }
  }

  return createController(deps, {
    name: "endpointslice",
    watch({ on, enqueue, enqueueAfter }) {
      const queue = (key: string) => ((sizes.get(key) ?? 0) >= LARGE ? enqueueAfter(key, BATCH) : enqueue(key));
      const podChanged = (pod: P) => {
        for (const service of selecting(services, pod)) queue(keyOf(service));
      };
      on(services, {
        add: (service) => enqueue(keyOf(service)),
        update: (service) => enqueue(keyOf(service)),
        delete: (service) => enqueue(keyOf(service)),
      });
      on(pods, onPodChange(podChanged));
      on(slices, {
        update(slice, previous) {
          const managed =
            slice.metadata.labels?.[MANAGED_BY] === MANAGER || previous.metadata.labels?.[MANAGED_BY] === MANAGER;
          if (managed && slice.metadata.generation !== previous.metadata.generation) enqueueSlice(slice);
        },
        delete: (slice) => void (slice.metadata.labels?.[MANAGED_BY] === MANAGER && enqueueSlice(slice)),
      });
      const zoneChanged = (name: string) => {
        for (const service of services.list()) if (service.spec?.selector && name) enqueue(keyOf(service));
      };
      on(nodes, {
        update(node, previous) {
          const label = "topology.kubernetes.io/zone";
          if (node.metadata.labels?.[label] !== previous.metadata.labels?.[label]) zoneChanged(node.metadata.name);
        },
      });
      function enqueueSlice({ metadata }: DeepReadonly<EndpointSlice>): void {
        const name = metadata.labels?.[SERVICE_NAME];
        if (name) queue(`${metadata.namespace}/${name}`);
      }
    },
    async reconcile(key) {
      const service = fromCache(services, key);
      if (!service) {
        sizes.delete(key);
        triggers.forget(key);
        return;
      }
      if (service.spec?.type === "ExternalName" || !service.spec?.selector || service.metadata.deletionTimestamp)
        return;
      const selected = selectedPods(pods, service);
      sizes.set(key, selected.length);
      const types = addressTypesOf(service);
      try {
        const trigger = triggers.of(key, service, selected);
        for (const type of types) await apply(service, type, selected, trigger);
        for (const slice of slices.byIndex("service", key)) {
          if (types.includes(slice.addressType as AddressType)) continue;
          await ignoreNotFound(
            client.delete(resources.endpointSlices, slice.metadata.name, { namespace: slice.metadata.namespace }),
          );
        }
      } catch (error) {
        if (isNamespaceTerminating(error)) return;
        triggers.forget(key);
        const text = `Error updating Endpoint Slices for Service ${key}: ${error instanceof Error ? error.message : String(error)}`;
        recorder.event(service, "Warning", "FailedToUpdateEndpointSlices", text);
        throw error;
      }
    },
  });
}

function labelsOf(service: S): Record<string, string> {
  const own = Object.fromEntries(
    Object.entries(service.metadata.labels ?? {}).filter(
      ([key]) => ![SERVICE_NAME, MANAGED_BY, HEADLESS].includes(key),
    ),
  );
  return {
    ...own,
    ...(isHeadless(service) ? { [HEADLESS]: "" } : {}),
    [SERVICE_NAME]: service.metadata.name,
    [MANAGED_BY]: MANAGER,
  };
}

export const isHeadless = (service: S): boolean => service.spec?.clusterIP === "None" || !service.spec?.clusterIP;

export function byNamespace<T extends { metadata: { namespace?: string } }>(informer: Informer<T>): void {
  informer.addIndex("namespace", (object) => [(object as T).metadata.namespace ?? ""]);
}

/** The services whose selector matches a pod. */
export const selecting = (services: Informer<Service>, pod: P): S[] =>
  services
    .byIndex("namespace", pod.metadata.namespace ?? "")
    .filter(({ spec }) => spec?.selector && matchesLabels(spec.selector, pod.metadata.labels));

export const selectedPods = (pods: Informer<Pod>, service: S): P[] =>
  pods
    .byIndex("namespace", service.metadata.namespace ?? "")
    .filter((pod) => matchesLabels(service.spec?.selector, pod.metadata.labels));

/** Calls `changed` when a pod's part in services may have changed, for the old labels too. */
export function onPodChange(changed: (pod: P) => void): {
  add(pod: P): void;
  update(pod: P, previous: P): void;
  delete(pod: P): void;
} {
  const view = (pod: P) =>
    JSON.stringify([
      pod.status?.podIP,
      pod.status?.podIPs,
      pod.spec.nodeName,
      isPodReady(pod),
      isPodTerminal(pod),
      pod.metadata.deletionTimestamp,
    ]);
  return {
    add: (pod) => void (pod.status?.podIP && changed(pod)),
    update(pod, previous) {
      const relabelled = !deepEqual(pod.metadata.labels, previous.metadata.labels);
      if (relabelled) changed(previous);
      if (relabelled || view(pod) !== view(previous)) changed(pod);
    },
    delete: changed,
  };
}
