import { deepEqual, type DeepReadonly } from "#base";
import { type ApiObject, type Node, notFound, type PersistentVolumeClaim, type Pod, resources } from "#kinds";
import { nodeOf } from "../authz/node-identity.ts";
import { podReferences } from "../authz/pod-references.ts";
import type { AdmissionAttributes, AdmissionPlugin, Reader } from "../ports.ts";
import { refuse } from "./support.ts";

const MIRROR = "kubernetes.io/config.mirror";

/**
 * Keeps the agent of a node to its own Node, its own pods and tokens for them.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
 */
export function createNodeRestriction({ reader }: { reader: Reader }): AdmissionPlugin {
  return {
    name: "NodeRestriction",
    handles: ({ user, operation }) => operation !== "CONNECT" && nodeOf(user) !== undefined,
    admit(attributes) {
      const node = nodeOf(attributes.user)!;
      const { kind, user } = attributes;
      if (node === "") throw refuse(attributes, `could not determine node from user ${JSON.stringify(user.username)}`);
      RULES[`${kind.group}/${kind.resource}`]?.(attributes, node, reader);
    },
  };
}

type Rule = (attributes: AdmissionAttributes, node: string, reader: Reader) => void;

const RULES: Readonly<Record<string, Rule>> = {
  "/pods": admitPod,
  "/nodes": admitNode,
  "/persistentvolumeclaims": admitClaim,
  "/serviceaccounts": admitToken,
  "coordination.k8s.io/leases": (attributes, node) => {
    if (attributes.namespace !== "kube-node-lease")
      throw refuse(attributes, 'can only access leases in the "kube-node-lease" system namespace');
    if (attributes.name !== node)
      throw refuse(attributes, "can only access node lease with the same name as the requesting node");
  },
  "storage.k8s.io/csinodes": (attributes, node) => {
    if (attributes.name !== node)
      throw refuse(attributes, "can only access CSINode with the same name as the requesting node");
  },
};

const quote = (text: string) => JSON.stringify(text);

function admitPod(attributes: AdmissionAttributes, node: string, reader: Reader): void {
  const { operation, subresource, namespace, name } = attributes;
  const existing = () => {
    const pod = (attributes.old as unknown as DeepReadonly<Pod>) ?? reader.get(resources.pods, namespace, name);
    if (!pod) throw notFound(resources.pods, name);
    return pod;
  };
  switch (subresource) {
    case "":
      if (operation === "CREATE") admitMirrorPod(attributes, node, reader);
      else if (operation !== "DELETE")
        throw refuse(
          attributes,
          `unexpected operation ${quote(operation)}, node ${quote(node)} can only create and delete mirror pods`,
        );
      else if (existing().spec.nodeName !== node)
        throw refuse(attributes, `node ${quote(node)} can only delete pods with spec.nodeName set to itself`);
      return;
    case "status":
      admitPodStatus(attributes, node);
      return;
    case "eviction":
      if (existing().spec.nodeName !== node)
        throw refuse(attributes, `node ${node} can only evict pods with spec.nodeName set to itself`);
      return;
    default:
      throw refuse(
        attributes,
        `unexpected pod subresource ${quote(subresource)}, only 'status' and 'eviction' are allowed`,
      );
  }
}

function admitPodStatus(attributes: AdmissionAttributes, node: string): void {
  const old = attributes.old as unknown as DeepReadonly<Pod>;
  const pod = attributes.object as unknown as Pod;
  if (old.spec.nodeName !== node)
    throw refuse(
      attributes,
      `node ${quote(node)} can only update pod status for pods with spec.nodeName set to itself`,
    );
  if (!deepEqual(old.metadata.labels ?? {}, pod.metadata.labels ?? {}))
    throw refuse(attributes, `node ${quote(node)} cannot update labels through pod status`);
  if (!deepEqual(old.status?.resourceClaimStatuses ?? [], pod.status?.resourceClaimStatuses ?? []))
    throw refuse(attributes, `node ${quote(node)} cannot update resource claim statues`);
}

function admitMirrorPod(attributes: AdmissionAttributes, node: string, reader: Reader): void {
  const pod = attributes.object as unknown as Pod;
  const mayOnly = (what: string) => refuse(attributes, `node ${quote(node)} can only create pods with ${what}`);
  if (pod.metadata.annotations?.[MIRROR] === undefined)
    throw refuse(
      attributes,
      `pod does not have ${quote(MIRROR)} annotation, node ${quote(node)} can only create mirror pods`,
    );
  if (pod.spec.nodeName !== node) throw mayOnly("spec.nodeName set to itself");
  const [owner, ...others] = pod.metadata.ownerReferences ?? [];
  if (others.length > 0) throw mayOnly("a single owner reference set to itself");
  if (owner?.apiVersion !== "v1" || owner.kind !== "Node" || owner.name !== node)
    throw mayOnly("an owner reference set to itself");
  if (!owner.controller) throw mayOnly("a controller owner reference set to itself");
  if (owner.blockOwnerDeletion)
    throw refuse(attributes, `node ${quote(node)} must not set blockOwnerDeletion on an owner reference`);
  const own = reader.get(resources.nodes, undefined, node);
  if (!own) throw notFound(resources.nodes, node);
  if (owner.uid !== own.metadata.uid)
    throw refuse(attributes, `node ${node} UID mismatch: expected ${owner.uid} got ${own.metadata.uid}`);
  const referred = [...podReferences(pod)].map((reference) => reference.split("/")[0]!);
  for (const [resource, words] of Object.entries(REFERENCES)) {
    if (referred.includes(resource))
      throw refuse(attributes, `node ${quote(node)} can not create pods that reference ${words}`);
  }
}

const REFERENCES: Readonly<Record<string, string>> = {
  serviceaccounts: "a service account",
  secrets: "secrets",
  configmaps: "configmaps",
  persistentvolumeclaims: "persistentvolumeclaims",
};

function admitClaim(attributes: AdmissionAttributes, node: string): void {
  if (attributes.subresource !== "status") throw refuse(attributes, "may only update PVC status");
  const rest = (object: ApiObject | undefined) => {
    const { metadata, status, ...fields } = object as unknown as PersistentVolumeClaim;
    const { resourceVersion: _r, managedFields: _m, ...identity } = metadata;
    const {
      capacity: _c,
      conditions: _o,
      allocatedResources: _a,
      allocatedResourceStatuses: _s,
      ...others
    } = status ?? {};
    return { ...fields, metadata: identity, status: others };
  };
  if (!deepEqual(rest(attributes.object), rest(attributes.old)))
    throw refuse(
      attributes,
      `node ${quote(node)} is not allowed to update fields other than status.capacity and status.conditions`,
    );
}

function admitNode(attributes: AdmissionAttributes, node: string): void {
  const { name, operation } = attributes;
  if (name !== node) throw refuse(attributes, `node ${quote(node)} is not allowed to modify node ${quote(name)}`);
  if (operation === "DELETE") return;
  const object = attributes.object as unknown as Node;
  const old = attributes.old as unknown as DeepReadonly<Node> | undefined;
  if (old && !deepEqual(object.spec?.taints ?? [], old.spec?.taints ?? []))
    throw refuse(attributes, `node ${quote(node)} is not allowed to modify taints`);
  const changed = forbiddenLabels(object.metadata.labels ?? {}, old?.metadata.labels ?? {});
  if (changed.length === 0) return;
  throw refuse(
    attributes,
    old
      ? `is not allowed to modify labels: ${changed.join(", ")}`
      : `node ${quote(node)} is not allowed to set the following labels: ${changed.join(", ")}`,
  );
}

/** Labels that steer workloads, where they differ. */
function forbiddenLabels(labels: Readonly<Record<string, string>>, old: Readonly<Record<string, string>>): string[] {
  return [...new Set([...Object.keys(labels), ...Object.keys(old)])]
    .filter((key) => labels[key] !== old[key] && isForbiddenLabel(key))
    .sort();
}

const KUBELET_LABELS = new Set([
  "kubernetes.io/hostname",
  "kubernetes.io/os",
  "kubernetes.io/arch",
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region",
  "node.kubernetes.io/instance-type",
  "beta.kubernetes.io/instance-type",
  "beta.kubernetes.io/os",
  "beta.kubernetes.io/arch",
]);

function isForbiddenLabel(key: string): boolean {
  const slash = key.indexOf("/");
  const prefix = slash < 0 ? "" : key.slice(0, slash);
  const within = (domain: string) => prefix === domain || prefix.endsWith(`.${domain}`);
  if (within("node-restriction.kubernetes.io")) return true;
  if (!within("kubernetes.io") && !within("k8s.io")) return false;
  return !KUBELET_LABELS.has(key) && !within("kubelet.kubernetes.io") && !within("node.kubernetes.io");
}

/** A token for a node is bound to a pod that runs there. */
function admitToken(attributes: AdmissionAttributes, node: string, reader: Reader): void {
  if (attributes.operation !== "CREATE" || attributes.subresource !== "token") return;
  const { boundObjectRef: ref } = (attributes.object as unknown as { spec?: { boundObjectRef?: Bound } }).spec ?? {};
  if (ref?.apiVersion !== "v1" || ref.kind !== "Pod" || !ref.name)
    throw refuse(attributes, "node requested token not bound to a pod");
  if (!ref.uid) throw refuse(attributes, "node requested token with a pod binding without a uid");
  const pod = reader.get(resources.pods, attributes.namespace, ref.name);
  if (!pod) throw notFound(resources.pods, ref.name);
  if (ref.uid !== pod.metadata.uid)
    throw refuse(
      attributes,
      `the UID in the bound object reference (${ref.uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  if (pod.spec.nodeName !== node)
    throw refuse(attributes, "node requested token bound to a pod scheduled on a different node");
}

interface Bound {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly uid?: string;
}
