import type { ApiObject, Resource } from "./object.ts";
import type { FieldError } from "./status-error.ts";

/** All that the API server needs to know of a kind that is served at one group and version. */
export interface KindInfo<T = ApiObject> extends Resource<T> {
  readonly listKind: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  /** `create delete deletecollection get list patch update watch`, or fewer. Empty: only subresources are served. */
  readonly verbs: readonly string[];
  readonly subresources: readonly SubresourceInfo[];
  /**
   * Where objects are kept. Two versions of one kind (autoscaling/v1 and v2; v1 and events.k8s.io/v1 Events) share a storage
   * and differ in `toStorage` / `fromStorage`.
   */
  readonly storage: { readonly group: string; readonly resource: string; readonly version: string };
  toStorage?(object: ApiObject): ApiObject;
  fromStorage?(object: ApiObject): ApiObject;
  /**
   * Custom resources: checks the types of metadata and removes fields that the schema doesn't know; gives what it removed
   * (`unknown field "spec.foo"`), or the first wrong type. Absent for built-in kinds, whose schema is known by name.
   */
  decode?(object: ApiObject): { readonly unknown: readonly string[]; readonly error: string | undefined };
  /** How the `scale` subresource reads and writes the object, where it is not by the usual fields (custom resources). */
  readonly scale?: {
    read(object: ApiObject): { spec: number | undefined; status: number; selector: string | undefined };
    write(object: ApiObject, replicas: number): void;
  };
  /** Custom resources: the schema of their definition (JSONSchemaProps). */
  readonly customSchema?: object;
  /** Custom resources: aborted when the kind is served no more, or in another way; watches end then. */
  readonly retired?: AbortSignal;
  /** Warning that every answer about a deprecated version carries. */
  readonly deprecation?: string;
  /** Custom resources that a webhook converts: from the stored version to this one and back, in order. @throws StatusError */
  convert?(objects: readonly ApiObject[], apiVersion: string): Promise<ApiObject[]>;
  readonly strategy: Strategy;
  readonly columns: readonly Column[];
  /** Field selectors beyond metadata.name and metadata.namespace: `spec.nodeName` → value. */
  selectableFields?(object: ApiObject): Record<string, string>;
  /** Name of the OpenAPI schema: `io.k8s.api.core.v1.Pod`. */
  readonly schema: string;
}

export interface SubresourceInfo {
  /** `status`, `scale`, `log`, … */
  readonly name: string;
  readonly verbs: readonly string[];
  /** Group, version and kind in discovery where they differ from the parent's. */
  readonly kind: string;
  readonly group?: string;
  readonly version?: string;
}

/**
 * What creating and changing objects of a kind means. All functions are pure but for the objects that they are told to
 * change in place (`object`, a private copy). `old` is never changed.
 */
export interface Strategy {
  /** False: PUT may create (leases and a few others); almost always false. */
  readonly allowCreateOnUpdate: boolean;
  /** PUT without resourceVersion is accepted as a blind write. */
  readonly allowUnconditionalUpdate: boolean;
  /** Static defaults, as the API server's; also run on objects read from requests before admission. */
  setDefaults(object: ApiObject): void;
  /** Clears what a client may not set (status), sets `metadata.generation = 1` where the kind has it. */
  prepareForCreate(object: ApiObject): void;
  /** Keeps what this call may not change (status on the main resource, everything else on `status`); bumps generation. */
  prepareForUpdate(object: ApiObject, old: ApiObject, subresource: string): void;
  /** Changes an object that is deleted for the first time: finalizers and status of kinds that go in steps. `now` in RFC 3339. */
  prepareForDelete?(object: ApiObject, now: string): void;
  validate(object: ApiObject): FieldError[];
  validateUpdate(object: ApiObject, old: ApiObject, subresource: string): FieldError[];
  /** Texts of `Warning` headers. */
  warnings(object: ApiObject, old?: ApiObject): string[];
  /** Pods (and others with graceful deletion): the grace period to use, seconds; undefined = deleted at once. */
  gracePeriodSeconds?(object: ApiObject, requested: number | undefined): number;
  /** `orphan` for the few kinds whose default is to leave dependents. */
  /** A delete answers with the object instead of a Status. Default false; kinds with a grace period always do. */
  readonly returnsDeleted?: boolean;
  /** False: never has dependents, so propagation policies mean nothing (Events). Default true. */
  readonly garbageCollected?: boolean;
  readonly defaultDeletionPropagation: "Background" | "Orphan";
}

/** A column of the server-side Table (meta/v1 TableColumnDefinition) and how its cell is made. */
export interface Column {
  readonly name: string;
  readonly type: "string" | "integer" | "number" | "boolean" | "date";
  readonly format: string;
  readonly description: string;
  /** 0 = always shown, 1 = only with `-o wide`. */
  readonly priority: number;
  cell(object: ApiObject, now: number): unknown;
}

/** The kinds that are served. Custom resources are added and removed while the server runs. */
export interface Scheme {
  all(): readonly KindInfo[];
  byResource(group: string, version: string, resource: string): KindInfo | undefined;
  byKind(apiVersion: string, kind: string): KindInfo | undefined;
}
