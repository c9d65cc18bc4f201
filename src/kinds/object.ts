/** What every API object has. The built-in kinds' own types are generated (`Pod`, `Deployment`, …) and fit this one. */
export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMetaLike;
  [field: string]: unknown;
}

export interface ObjectMetaLike {
  name: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string | null;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReferenceLike[];
  finalizers?: string[];
  managedFields?: unknown[];
  selfLink?: string;
}

export interface OwnerReferenceLike {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** Where a kind is served: `/apis/<group>/<version>/[namespaces/<ns>/]<resource>`. `T` is the type of its objects. */
export interface Resource<T = ApiObject> {
  /** "" for the core group. */
  readonly group: string;
  readonly version: string;
  /** Lower-case plural, as in paths: `pods`. */
  readonly resource: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Type only: never present. */
  readonly object?: T;
}

/** `v1` or `apps/v1`. */
export function apiVersionOf(resource: Pick<Resource, "group" | "version">): string {
  return resource.group ? `${resource.group}/${resource.version}` : resource.version;
}
