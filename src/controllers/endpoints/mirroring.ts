import { type DeepReadonly, deepEqual } from "#base";
import {
  controllerReference,
  type Endpoint,
  type EndpointPort,
  type Endpoints,
  type EndpointSlice,
  resources,
} from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { copyOf, fromCache, ignoreNotFound, keyOf } from "../runtime/objects.ts";
import { HEADLESS, MANAGED_BY, SERVICE_NAME, TRIGGER_TIME } from "./endpointslice.ts";
import { type AddressType, planSlices, type PortGroup, slicePrefix } from "./plan.ts";

type E = DeepReadonly<Endpoints>;

const MANAGER = "endpointslicemirroring-controller.k8s.io";
const SKIP = "endpointslice.kubernetes.io/skip-mirror";
const LEADER = "control-plane.alpha.kubernetes.io/leader";
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
/** Addresses of a subset that are mirrored at most. */
const MAX_ADDRESSES = 1000;

/**
 * EndpointSlices for Endpoints that people keep by hand, of Services without a selector.
 * https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/#endpointslice-mirroring
 */
export function createEndpointSliceMirroringController(deps: ControllerDeps): Controller {
  const { client } = deps;
  const services = deps.informers.for(resources.services);
  const endpoints = deps.informers.for(resources.endpoints);
  const slices = deps.informers.for(resources.endpointSlices);
  slices.addIndex("mirror", ({ metadata: { namespace, labels = {} } }) =>
    labels[MANAGED_BY] === MANAGER && labels[SERVICE_NAME] ? [`${namespace}/${labels[SERVICE_NAME]}`] : [],
  );

  const isMirrored = (object: E | undefined): object is E =>
    object !== undefined &&
    object.metadata.labels?.[SKIP] !== "true" &&
    object.metadata.annotations?.[LEADER] === undefined;

  async function apply(object: E, type: AddressType): Promise<void> {
    const existing = slices.byIndex("mirror", keyOf(object)).filter(({ addressType }) => addressType === type);
    const groups = groupsOf(object, type);
    const plan = planSlices(groups, existing);
    const { namespace, name } = object.metadata;
    const metadata = metadataOf(object);
    for (const { ports, endpoints: list } of groups.length ? plan.create : []) {
      const owned = { ...metadata, ownerReferences: [controllerReference(object, resources.endpoints)] };
      await client.create(resources.endpointSlices, {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: {
          generateName: slicePrefix(name),
          ...(namespace ? { namespace } : {}),
          ...owned,
        } as EndpointSlice["metadata"],
        addressType: type,
        endpoints: [...list],
        ports: [...ports],
      });
    }
    const updates = new Map(plan.update.map(({ slice, endpoints: list }) => [slice, list]));
    for (const slice of existing) {
      const list = updates.get(slice);
      if (plan.remove.includes(slice) || (!list && deepEqual(slice.metadata.labels, metadata.labels))) continue;
      const copy = copyOf(resources.endpointSlices, slice);
      await client.update(resources.endpointSlices, {
        ...copy,
        metadata: { ...copy.metadata, ...metadata },
        ...(list ? { endpoints: [...list] } : {}),
      });
    }
    for (const { metadata: old } of groups.length ? plan.remove : existing) {
      await ignoreNotFound(client.delete(resources.endpointSlices, old.name, { namespace }));
    }
  }

  return createController(deps, {
    name: "endpointslicemirroring",
    watch({ on, enqueue }) {
      on(endpoints, {
        add: (o) => enqueue(keyOf(o)),
        update: (o) => enqueue(keyOf(o)),
        delete: (o) => enqueue(keyOf(o)),
      });
      on(services, {
        add: (o) => enqueue(keyOf(o)),
        update: (o) => enqueue(keyOf(o)),
        delete: (o) => enqueue(keyOf(o)),
      });
      on(slices, {
        delete({ metadata: { namespace, labels = {} } }) {
          if (labels[MANAGED_BY] === MANAGER && labels[SERVICE_NAME]) enqueue(`${namespace}/${labels[SERVICE_NAME]}`);
        },
      });
    },
    async reconcile(key) {
      const object = fromCache(endpoints, key);
      const service = fromCache(services, key);
      if (!isMirrored(object) || !service || service.spec?.selector) {
        for (const { metadata } of slices.byIndex("mirror", key)) {
          await ignoreNotFound(
            client.delete(resources.endpointSlices, metadata.name, { namespace: metadata.namespace }),
          );
        }
        return;
      }
      await apply(object, "IPv4");
      await apply(object, "IPv6");
    },
  });
}

function metadataOf({ metadata }: E): { labels: Record<string, string>; annotations: Record<string, string> } {
  const { [LAST_APPLIED]: _, [TRIGGER_TIME]: __, ...annotations } = metadata.annotations ?? {};
  const { [HEADLESS]: ___, ...labels } = metadata.labels ?? {};
  return { labels: { ...labels, [SERVICE_NAME]: metadata.name, [MANAGED_BY]: MANAGER }, annotations };
}

function groupsOf(object: E, type: AddressType): PortGroup[] {
  return (object.subsets ?? []).flatMap((subset) => {
    const ports: EndpointPort[] = (subset.ports ?? []).map(({ name = "", port, protocol = "TCP", appProtocol }) => ({
      name,
      port,
      protocol,
      ...(appProtocol ? { appProtocol } : {}),
    }));
    const all = [
      ...(subset.addresses ?? []).map((address) => ({ address, ready: true })),
      ...(subset.notReadyAddresses ?? []).map((address) => ({ address, ready: false })),
    ];
    const endpoints: Endpoint[] = all
      .filter(({ address }) => address.ip.includes(":") === (type === "IPv6"))
      .slice(0, MAX_ADDRESSES)
      .map(({ address: { ip, hostname, nodeName, targetRef }, ready }) => ({
        addresses: [ip],
        conditions: { ready },
        ...(hostname ? { hostname } : {}),
        ...(nodeName ? { nodeName } : {}),
        ...(targetRef ? { targetRef: { ...targetRef } } : {}),
      }));
    return endpoints.length ? [{ ports, endpoints }] : [];
  });
}
