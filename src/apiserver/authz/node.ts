import type { DeepReadonly } from "#base";
import { type ApiObject, type Pod, type PersistentVolume, resources } from "#kinds";
import type { AuthorizationAttributes, Authorizer, Reader } from "../ports.ts";
import { COMPONENT_ROLES } from "./bootstrap/component-roles.ts";
import { nodeOf } from "./node-identity.ts";
import { podReferences } from "./pod-references.ts";
import { ruleAllows } from "./rules.ts";
import { selectedValue } from "./selected-value.ts";

type Decision = { allowed: boolean; reason: string };
const ALLOWED: Decision = { allowed: true, reason: "" };
const NO_OPINION: Decision = { allowed: false, reason: "" };
const no = (reason: string): Decision => ({ allowed: false, reason });

/**
 * What the agent of a node may do: what its own pods and it itself need, and nothing of other nodes.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/node/
 */
export function createNodeAuthorizer({ reader }: { reader: Reader }): Authorizer & Disposable {
  const pods = indexPods(reader);
  const related = (node: string, { resource, namespace, name }: AuthorizationAttributes) =>
    isRelated(pods, reader, node, resource, namespace, name);
  return {
    authorize(attributes) {
      const node = nodeOf(attributes.user);
      if (node === undefined) return NO_OPINION;
      if (node === "") return no(`unknown node for user ${JSON.stringify(attributes.user.username)}`);
      const check = attributes.isResourceRequest && CHECKS[`${attributes.group}/${attributes.resource}`];
      if (check) return check(node, attributes, related);
      return COMPONENT_ROLES["system:node"]!.some((rule) => ruleAllows(rule, attributes)) ? ALLOWED : NO_OPINION;
    },
    [Symbol.dispose]: () => pods[Symbol.dispose](),
  };
}

type Related = (node: string, attributes: AuthorizationAttributes) => boolean;
type Check = (node: string, attributes: AuthorizationAttributes, related: Related) => Decision;

const CHECKS: Readonly<Record<string, Check>> = {
  "/secrets": readOne,
  "/configmaps": readOne,
  "/persistentvolumeclaims": (node, attributes, related) => {
    if (attributes.subresource !== "status") return getOne(node, attributes, related);
    if (attributes.verb !== "update" && attributes.verb !== "patch") return no("can only get/update/patch this type");
    return relatedOne(node, attributes, related);
  },
  "/persistentvolumes": getOne,
  "resource.k8s.io/resourceclaims": getOne,
  "storage.k8s.io/volumeattachments": getOne,
  "/serviceaccounts": (node, attributes, related) => {
    if (attributes.verb !== "create" || !attributes.name)
      return no("can only create tokens for individual service accounts");
    if (attributes.subresource !== "token") return no("can only create token subresource of serviceaccount");
    return relatedOne(node, attributes, related);
  },
  "coordination.k8s.io/leases": (node, { verb, namespace, name }) => {
    if (!OWN_VERBS.has(verb)) return no("can only get, create, update, patch, or delete a node lease");
    if (namespace !== "kube-node-lease") return no('can only access leases in the "kube-node-lease" system namespace');
    // the name of what is created is looked at by the NodeRestriction admission
    if (verb !== "create" && name !== node)
      return no("can only access node lease with the same name as the requesting node");
    return ALLOWED;
  },
  "storage.k8s.io/csinodes": (node, { verb, subresource, name }) => {
    if (!OWN_VERBS.has(verb)) return no("can only get, create, update, patch, or delete a CSINode");
    if (subresource) return no("cannot authorize CSINode subresources");
    if (verb !== "create" && name !== node)
      return no("can only access CSINode with the same name as the requesting node");
    return ALLOWED;
  },
  "resource.k8s.io/resourceslices": resourceSlice,
  "/nodes": ownNode,
  "/pods": ownPod,
};

const OWN_VERBS = new Set(["get", "create", "update", "patch", "delete"]);
const READS = new Set(["get", "list", "watch"]);

function getOne(node: string, attributes: AuthorizationAttributes, related: Related): Decision {
  if (attributes.verb !== "get") return no("can only get individual resources of this type");
  if (attributes.subresource) return no("cannot get subresource");
  return relatedOne(node, attributes, related);
}

function readOne(node: string, attributes: AuthorizationAttributes, related: Related): Decision {
  if (!READS.has(attributes.verb)) return no("can only read resources of this type");
  if (attributes.subresource) return no("cannot read subresource");
  if (!attributes.namespace) return no("can only read namespaced object of this type");
  return relatedOne(node, attributes, related);
}

function relatedOne(node: string, attributes: AuthorizationAttributes, related: Related): Decision {
  if (!attributes.name) return no("No Object name found");
  return related(node, attributes) ? ALLOWED : no(`no relationship found between node '${node}' and this object`);
}

function resourceSlice(node: string, attributes: AuthorizationAttributes, related: Related): Decision {
  if (attributes.subresource) return no("cannot authorize ResourceSlice subresources");
  switch (attributes.verb) {
    case "create":
      return ALLOWED;
    case "get":
    case "update":
    case "patch":
    case "delete":
      return relatedOne(node, attributes, related);
    case "watch":
    case "list":
    case "deletecollection":
      if (selectedValue(attributes.fieldSelector, "nodeName") === node) return ALLOWED;
      return no("can only list/watch/deletecollection resourceslices with nodeName field selector");
    default:
      return no(
        "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
      );
  }
}

function ownNode(node: string, { subresource, verb, name }: AuthorizationAttributes): Decision {
  const writes = verb === "update" || verb === "patch";
  if (subresource === "status") return writes ? ALLOWED : NO_OPINION;
  if (subresource) return NO_OPINION;
  if (writes || verb === "create") return ALLOWED;
  if (!READS.has(verb)) return NO_OPINION;
  if (name === node) return ALLOWED;
  return no(
    name
      ? `node '${node}' cannot read '${name}', only its own Node object`
      : `node '${node}' cannot read all nodes, only its own Node object`,
  );
}

/** Writes are looked at by the NodeRestriction admission, which knows the pod. */
function ownPod(node: string, attributes: AuthorizationAttributes, related: Related): Decision {
  const { subresource, verb } = attributes;
  if (subresource === "status") return verb === "update" || verb === "patch" ? ALLOWED : NO_OPINION;
  if (subresource === "eviction") return verb === "create" ? ALLOWED : NO_OPINION;
  if (subresource) return NO_OPINION;
  if (verb === "create" || verb === "delete") return ALLOWED;
  if (verb === "get") return getOne(node, attributes, related);
  if (verb !== "list" && verb !== "watch") return NO_OPINION;
  if (selectedValue(attributes.fieldSelector, "spec.nodeName") === node) return ALLOWED;
  if (attributes.name) return relatedOne(node, attributes, related);
  return no("can only list/watch pods with spec.nodeName field selector");
}

interface PodIndex extends Disposable {
  /** Pods of a node by `namespace/name`. */
  of(node: string): ReadonlyMap<string, DeepReadonly<Pod>> | undefined;
}

function indexPods(reader: Reader): PodIndex {
  const byNode = new Map<string, Map<string, DeepReadonly<Pod>>>();
  const put = (object: ApiObject, deleted: boolean) => {
    const pod = object as unknown as DeepReadonly<Pod>;
    const { nodeName } = pod.spec;
    if (!nodeName) return;
    const pods = byNode.get(nodeName) ?? new Map();
    byNode.set(nodeName, pods);
    const key = `${pod.metadata.namespace}/${pod.metadata.name}`;
    if (deleted) pods.delete(key);
    else pods.set(key, pod);
    if (pods.size === 0) byNode.delete(nodeName);
  };
  const watching = reader.onChange(resources.pods, put);
  for (const pod of reader.list(resources.pods)) put(pod as unknown as ApiObject, false);
  return { of: (node) => byNode.get(node), [Symbol.dispose]: () => watching[Symbol.dispose]() };
}

/** True when the object is needed by the node: named by one of its pods, or behind what they name. */
function isRelated(
  pods: PodIndex,
  reader: Reader,
  node: string,
  resource: string,
  namespace: string,
  name: string,
): boolean {
  switch (resource) {
    case "pods":
      return pods.of(node)?.has(`${namespace}/${name}`) ?? false;
    case "persistentvolumes": {
      const volume = reader.get(resources.persistentVolumes, undefined, name);
      return volume !== undefined && usesVolume(pods, node, volume);
    }
    case "volumeattachments":
      return reader.get(resources.volumeAttachments, undefined, name)?.spec.nodeName === node;
    case "resourceslices":
      return reader.get(resources.resourceSlices, undefined, name)?.spec.nodeName === node;
    default:
      return isNamed(pods, node, namespace, `${resource}/${name}`);
  }
}

function isNamed(pods: PodIndex, node: string, namespace: string, reference: string): boolean {
  for (const pod of pods.of(node)?.values() ?? []) {
    if (pod.metadata.namespace === namespace && podReferences(pod).has(reference)) return true;
  }
  return false;
}

function usesVolume(pods: PodIndex, node: string, { spec }: DeepReadonly<PersistentVolume>): boolean {
  const claim = spec?.claimRef;
  if (!claim?.namespace || !claim.name) return false;
  return isNamed(pods, node, claim.namespace, `persistentvolumeclaims/${claim.name}`);
}
