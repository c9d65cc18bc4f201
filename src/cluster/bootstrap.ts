import { LOOPBACK } from "#apiserver";
import type { Client } from "#client";
import { isStatus, type Resource, resources, type ServiceCIDR } from "#kinds";
import { reconcileFlowControl } from "./bootstrap-flow-control.ts";
import { reconcilePolicy } from "./bootstrap-policy.ts";
import type { ControlPlane } from "./control-plane.ts";
import type { InstanceNetwork } from "./network.ts";

const NAMESPACES = ["default", "kube-system", "kube-public", "kube-node-lease"];

/** Makes what every cluster has from its first moment; what is there already stays as it is. */
export async function bootstrapObjects(
  plane: Pick<ControlPlane, "clientAs" | "clock" | "reader">,
  network: InstanceNetwork,
  apiPort: number,
): Promise<void> {
  const client = plane.clientAs(LOOPBACK, "kube-apiserver");
  const create = async <T>(resource: Resource<T>, object: T, namespace?: string) => {
    await client.create(resource, object, namespace ? { namespace } : {}).catch((error: unknown) => {
      if (!isStatus(error, "AlreadyExists")) throw error;
    });
  };
  await Promise.all(
    NAMESPACES.map((name) =>
      create(resources.namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name } } as never),
    ),
  );
  await Promise.all([
    reconcilePolicy(client, plane.reader),
    reconcileFlowControl(client, plane.reader, plane.clock.now()),
    create(resources.serviceCIDRs, serviceCIDR(network)),
    create(resources.services, kubernetesService(network) as never, "default"),
    create(resources.services, dnsService(network) as never, "kube-system"),
    ...PRIORITY_CLASSES.map((priority) => create(resources.priorityClasses, priority as never)),
  ]);
  await Promise.all([
    publish(client, resources.endpoints, endpointsOf(network.hostAddress, apiPort), "default"),
    publish(
      client,
      resources.endpointSlices,
      sliceOf("kubernetes", "kubernetes", network.hostAddress, [{ name: "https", port: apiPort, protocol: "TCP" }]),
      "default",
    ),
    publish(
      client,
      resources.endpointSlices,
      sliceOf("kube-dns", "kube-dns", network.hostAddress, [
        { name: "dns", port: 53, protocol: "UDP" },
        { name: "dns-tcp", port: 53, protocol: "TCP" },
      ]),
      "kube-system",
    ),
  ]);
}

/** Creates or replaces: addresses and ports may be others than at the last start. */
async function publish<T>(client: Client, resource: Resource<T>, object: unknown, namespace: string): Promise<void> {
  const { name } = (object as { metadata: { name: string } }).metadata;
  try {
    await client.create(resource, object as T, { namespace });
  } catch (error) {
    if (!isStatus(error, "AlreadyExists")) throw error;
    await client.patch(resource, name, { type: "merge", body: object }, { namespace });
  }
}

function serviceCIDR({ serviceCIDR }: InstanceNetwork): ServiceCIDR {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "ServiceCIDR",
    metadata: { name: "kubernetes" },
    spec: { cidrs: [serviceCIDR] },
  };
}

function kubernetesService({ kubernetesServiceIP }: InstanceNetwork) {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "kubernetes", labels: { component: "apiserver", provider: "kubernetes" } },
    spec: {
      clusterIP: kubernetesServiceIP,
      ports: [{ name: "https", port: 443, protocol: "TCP", targetPort: 6443 }],
      sessionAffinity: "None",
      type: "ClusterIP",
    },
  };
}

function dnsService({ dnsServiceIP }: InstanceNetwork) {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name: "kube-dns",
      labels: { "k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS" },
    },
    spec: {
      clusterIP: dnsServiceIP,
      ports: [
        { name: "dns", port: 53, protocol: "UDP", targetPort: 53 },
        { name: "dns-tcp", port: 53, protocol: "TCP", targetPort: 53 },
      ],
    },
  };
}

function endpointsOf(address: string, port: number) {
  return {
    apiVersion: "v1",
    kind: "Endpoints",
    metadata: { name: "kubernetes", labels: { "endpointslice.kubernetes.io/skip-mirror": "true" } },
    subsets: [{ addresses: [{ ip: address }], ports: [{ name: "https", port, protocol: "TCP" }] }],
  };
}

function sliceOf(name: string, service: string, address: string, ports: readonly object[]) {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name, labels: { "kubernetes.io/service-name": service } },
    addressType: "IPv4",
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports,
  };
}

const PRIORITY_CLASSES = [
  {
    name: "system-cluster-critical",
    value: 2_000_000_000,
    description: "For pods without which the cluster does not work; they may move to another node.",
  },
  {
    name: "system-node-critical",
    value: 2_000_001_000,
    description: "For pods without which their node does not work; they stay where they are.",
  },
].map(({ name, value, description }) => ({
  apiVersion: "scheduling.k8s.io/v1",
  kind: "PriorityClass",
  metadata: { name },
  value,
  description,
}));
