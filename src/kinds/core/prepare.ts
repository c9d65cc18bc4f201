import { deepEqual } from "#base";
import type { Namespace, Node, PersistentVolume, PersistentVolumeClaim, Secret, Service } from "../generated/types.ts";

export function prepareNamespace(namespace: Namespace): void {
  namespace.status = { phase: "Active" };
  const finalizers = namespace.spec.finalizers ?? [];
  namespace.spec.finalizers = finalizers.includes("kubernetes") ? finalizers : [...finalizers, "kubernetes"];
}

/** Finalizers of the spec change only through the `finalize` subresource, and nothing else through it. */
export function prepareNamespaceUpdate(namespace: Namespace, old: Namespace, subresource: string): void {
  if (subresource === "finalize") return;
  if (old.spec?.finalizers) namespace.spec.finalizers = [...old.spec.finalizers];
  else delete namespace.spec.finalizers;
}

export function preparePersistentVolume(volume: PersistentVolume): void {
  volume.status = { phase: "Pending" };
  if (volume.metadata.creationTimestamp) volume.status.lastPhaseTransitionTime = volume.metadata.creationTimestamp;
}

export function preparePersistentVolumeClaim(claim: PersistentVolumeClaim): void {
  claim.status = { phase: "Pending" };
}

/** An update without a type means the type that it had. */
export function prepareSecretUpdate(secret: Secret, old: Secret): void {
  secret.type ||= old.type as string;
}

/** The deprecated configuration source of nodes is gone. */
export function prepareNode(node: Node): void {
  delete node.spec.configSource;
  delete node.status?.config;
}

type ServiceField = keyof Service["spec"];

/**
 * A change of type takes the fields along that only the old type had, where the client left them as they were
 * (`kubectl patch svc x -p '{"spec":{"type":"ClusterIP"}}'` must not fail for its node ports).
 */
export function prepareServiceUpdate(service: Service, old: Service, subresource: string): void {
  if (subresource !== "") return;
  const { spec } = service;
  const needsClusterIP = (type: string | undefined) => type !== "ExternalName";
  const needsNodePort = (type: string | undefined) => type === "NodePort" || type === "LoadBalancer";
  const drop = (...fields: ServiceField[]) => {
    if (fields.every((field) => deepEqual(spec[field], old.spec[field])))
      for (const field of fields) delete spec[field];
  };
  // external addresses may go without a change of type
  if (isExternal(old.spec) && !isExternal(spec)) drop("externalTrafficPolicy");
  if (spec.type === old.spec.type) return;
  if (needsClusterIP(old.spec.type) && !needsClusterIP(spec.type)) {
    drop("clusterIP", "clusterIPs");
    drop("ipFamilies");
    drop("ipFamilyPolicy");
    drop("internalTrafficPolicy");
  }
  if (needsNodePort(old.spec.type) && !needsNodePort(spec.type)) {
    if (sameNodePorts(service, old)) for (const port of spec.ports ?? []) delete port.nodePort;
  }
  if (old.spec.type === "LoadBalancer") {
    drop("healthCheckNodePort");
    drop("allocateLoadBalancerNodePorts");
    drop("loadBalancerClass");
  }
}

/** Reached from outside of the cluster, so that a policy for traffic from there has a meaning. */
function isExternal({ type, externalIPs = [] }: Service["spec"]): boolean {
  return type === "NodePort" || type === "LoadBalancer" || (type === "ClusterIP" && externalIPs.length > 0);
}

function sameNodePorts(service: Service, old: Service): boolean {
  const before = new Set((old.spec.ports ?? []).map(({ nodePort }) => nodePort));
  return (service.spec.ports ?? []).every(({ nodePort }) => !nodePort || before.has(nodePort));
}
