import { isIPv4 } from "node:net";
import type { DeepReadonly } from "#base";
import { type IPAddress, resources, type Service } from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { ignoreNotFound } from "../runtime/objects.ts";

const MANAGED_BY = "ipaddress.kubernetes.io/managed-by";
const FAMILY = "ipaddress.kubernetes.io/ip-family";
const ALLOCATOR = "ipallocator.k8s.io";

/** An IPAddress object for each address that a Service holds. The allocation itself is the API server's; this makes it visible. */
export function createIPAddressController(deps: ControllerDeps): Controller {
  const { client } = deps;
  const services = deps.informers.for(resources.services);
  const addresses = deps.informers.for(resources.ipAddresses);
  services.addIndex("clusterIPs", addressesOf);

  return createController(deps, {
    name: "service-ip-addresses",
    watch({ on, enqueue }) {
      const look = (service: DeepReadonly<Service>) => {
        for (const address of addressesOf(service)) enqueue(address);
      };
      on(services, {
        add: look,
        update(now, before) {
          look(now);
          look(before);
        },
        delete: look,
      });
      on(addresses, {
        add: ({ metadata }) => enqueue(metadata.name),
        update: ({ metadata }) => enqueue(metadata.name),
        delete: ({ metadata }) => enqueue(metadata.name),
      });
    },
    async reconcile(address) {
      const service = services.byIndex("clusterIPs", address)[0];
      const found = addresses.get(undefined, address);
      if (!service) {
        // what others made is theirs
        if (found?.metadata.labels?.[MANAGED_BY] === ALLOCATOR)
          await ignoreNotFound(client.delete(resources.ipAddresses, address));
        return;
      }
      if (!found) await client.create(resources.ipAddresses, objectOf(address, service));
      else if (!refersTo(found, service)) await ignoreNotFound(client.delete(resources.ipAddresses, address));
    },
  });
}

const addressesOf = ({ spec }: DeepReadonly<Service>): string[] =>
  (spec?.clusterIPs ?? []).filter((address) => address !== "" && address !== "None");

function refersTo({ spec }: DeepReadonly<IPAddress>, { metadata }: DeepReadonly<Service>): boolean {
  const { resource, namespace, name } = spec?.parentRef ?? {};
  return resource === "services" && namespace === metadata.namespace && name === metadata.name;
}

function objectOf(address: string, { metadata: { namespace, name } }: DeepReadonly<Service>): IPAddress {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "IPAddress",
    metadata: {
      name: address,
      labels: { [FAMILY]: isIPv4(address) ? "IPv4" : "IPv6", [MANAGED_BY]: ALLOCATOR },
    },
    spec: { parentRef: { resource: "services", name, ...(namespace ? { namespace } : {}) } },
  };
}
