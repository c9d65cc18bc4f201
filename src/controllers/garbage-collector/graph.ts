import type { OwnerReferenceLike, Resource } from "#kinds";
import type { AnyObject } from "../runtime/objects.ts";

/** An object of the cluster, or one that is only known from references to it (`observed` false). */
export interface Node {
  readonly uid: string;
  resource: Resource | undefined;
  apiVersion: string;
  kind: string;
  namespace: string | undefined;
  name: string;
  owners: readonly OwnerReferenceLike[];
  readonly dependents: Set<Node>;
  observed: boolean;
  beingDeleted: boolean;
  /** Being deleted in the foreground: waits for its dependents. */
  deletingDependents: boolean;
  /** Being deleted so that its dependents stay. */
  orphaning: boolean;
}

export const FOREGROUND = "foregroundDeletion";
export const ORPHAN = "orphan";

export interface Graph {
  get(uid: string): Node | undefined;
  /** Takes in an object as it is now; gives the uids of nodes that have to be looked at. */
  put(object: AnyObject, resource: Resource): string[];
  /** The object is gone; gives the uids that have to be looked at. */
  remove(uid: string): string[];
  /** True when an owner with this uid is known to have been deleted. */
  isGone(uid: string): boolean;
  markGone(uid: string): void;
  readonly size: number;
}

/** How many deleted owners are remembered. */
const REMEMBERED = 5000;

/** Who owns whom, over all kinds. Keeps no objects, only what garbage collection needs of them. */
export function createGraph(onForeignOwner: (dependent: Node, reference: OwnerReferenceLike) => void): Graph {
  const nodes = new Map<string, Node>();
  const gone = new Set<string>();

  const ownerNode = (reference: OwnerReferenceLike, dependent: Node, look: string[]): Node => {
    let owner = nodes.get(reference.uid);
    if (!owner) {
      owner = {
        uid: reference.uid,
        resource: undefined,
        apiVersion: reference.apiVersion,
        kind: reference.kind,
        namespace: dependent.namespace,
        name: reference.name,
        owners: [],
        dependents: new Set(),
        observed: false,
        beingDeleted: false,
        deletingDependents: false,
        orphaning: false,
      };
      nodes.set(owner.uid, owner);
      look.push(owner.uid);
    } else if (owner.observed && owner.namespace && owner.namespace !== dependent.namespace) {
      onForeignOwner(dependent, reference);
      look.push(dependent.uid);
    }
    return owner;
  };

  const graph: Graph = {
    get: (uid) => nodes.get(uid),
    get size() {
      return nodes.size;
    },
    put(object, resource) {
      const { uid = "", name, namespace, finalizers = [], deletionTimestamp, ownerReferences = [] } = object.metadata;
      const look: string[] = [];
      const before = nodes.get(uid);
      const node: Node = before ?? {
        uid,
        resource,
        apiVersion: "",
        kind: "",
        namespace,
        name,
        owners: [],
        dependents: new Set(),
        observed: false,
        beingDeleted: false,
        deletingDependents: false,
        orphaning: false,
      };
      nodes.set(uid, node);
      const wasForeground = node.deletingDependents;
      const wasOrphaning = node.orphaning;
      const oldOwners = node.owners;
      const { group, version, kind } = resource;
      Object.assign(node, {
        resource,
        apiVersion: group ? `${group}/${version}` : version,
        kind,
        namespace,
        name,
        owners: ownerReferences,
        observed: true,
        beingDeleted: Boolean(deletionTimestamp),
        deletingDependents: Boolean(deletionTimestamp) && finalizers.includes(FOREGROUND),
        orphaning: Boolean(deletionTimestamp) && finalizers.includes(ORPHAN),
      });
      const now = new Set(ownerReferences.map((reference) => reference.uid));
      for (const old of oldOwners) {
        const owner = nodes.get(old.uid);
        const current = ownerReferences.find((reference) => reference.uid === old.uid);
        if (owner?.deletingDependents && (!current || (old.blockOwnerDeletion && !current.blockOwnerDeletion))) {
          look.push(owner.uid);
        }
        if (!owner || now.has(old.uid)) continue;
        owner.dependents.delete(node);
        if (!owner.observed && owner.dependents.size === 0) nodes.delete(owner.uid);
      }
      const had = new Set(oldOwners.map((reference) => reference.uid));
      for (const reference of ownerReferences) {
        const owner = ownerNode(reference, node, look);
        owner.dependents.add(node);
        if (had.has(reference.uid)) continue;
        if (owner.deletingDependents || gone.has(owner.uid)) look.push(uid);
      }
      if (oldOwners.length > 0 && [...had].some((one) => !now.has(one))) look.push(uid);
      if (!before?.observed && before) {
        // References may have named it by a wrong kind or namespace: its dependents have to be judged again.
        for (const dependent of node.dependents) {
          if (node.namespace && dependent.namespace !== node.namespace) look.push(dependent.uid);
        }
      }
      if (node.orphaning && !wasOrphaning) look.push(uid);
      if (node.deletingDependents && !wasForeground) {
        look.push(uid);
        for (const dependent of node.dependents) look.push(dependent.uid);
      }
      return look;
    },
    remove(uid) {
      const node = nodes.get(uid);
      graph.markGone(uid);
      if (!node) return [];
      nodes.delete(uid);
      const look = [...node.dependents].map((dependent) => dependent.uid);
      for (const reference of node.owners) {
        const owner = nodes.get(reference.uid);
        if (!owner) continue;
        owner.dependents.delete(node);
        if (owner.deletingDependents) look.push(owner.uid);
        if (!owner.observed && owner.dependents.size === 0) nodes.delete(owner.uid);
      }
      return look;
    },
    isGone: (uid) => gone.has(uid),
    markGone(uid) {
      gone.add(uid);
      if (gone.size > REMEMBERED) gone.delete(gone.values().next().value!);
    },
  };
  return graph;
}
