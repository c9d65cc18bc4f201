import type { Informers } from "#client";
import { resources } from "#kinds";
import type { DnsFacts } from "./records.ts";

/** Facts from shared informers, found by index. */
export function factsFrom(informers: Informers): { facts: DnsFacts; synced(signal: AbortSignal): Promise<void> } {
  const services = informers.for(resources.services);
  const slices = informers.for(resources.endpointSlices);
  const namespaces = informers.for(resources.namespaces);
  services.addIndex("clusterIP", ({ spec }) => (spec?.clusterIP && spec.clusterIP !== "None" ? [spec.clusterIP] : []));
  slices.addIndex("service", ({ metadata, addressType }) => {
    const name = metadata.labels?.["kubernetes.io/service-name"];
    return name && addressType === "IPv4" ? [`${metadata.namespace}/${name}`] : [];
  });
  slices.addIndex("namedAddress", ({ endpoints }) =>
    (endpoints ?? []).flatMap(({ hostname, addresses: [ip] }) => (hostname && ip ? [ip] : [])),
  );
  return {
    facts: {
      service: (namespace, name) => services.get(namespace, name),
      slices: (namespace, name) => slices.byIndex("service", `${namespace}/${name}`),
      hasNamespace: (name) => namespaces.get(undefined, name) !== undefined,
      serviceByAddress: (ip) => services.byIndex("clusterIP", ip)[0],
      endpointByAddress(ip) {
        for (const { metadata, endpoints } of slices.byIndex("namedAddress", ip)) {
          const hostname = endpoints?.find(({ addresses }) => addresses[0] === ip)?.hostname;
          if (hostname) return `${hostname}.${metadata.labels?.["kubernetes.io/service-name"]}.${metadata.namespace}`;
        }
        return undefined;
      },
    },
    async synced(signal) {
      await Promise.all([services.synced(signal), slices.synced(signal), namespaces.synced(signal)]);
    },
  };
}
