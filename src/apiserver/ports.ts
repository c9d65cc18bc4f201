import type { Reinvocation } from "./admission/reinvocation.ts";
import type { ApiObject, ApiRequest, KindInfo, Resource, UserInfo } from "#kinds";

/** What a request asks for, read from its method and path (apiserver's RequestInfo). */
export interface RequestInfo {
  readonly isResourceRequest: boolean;
  /** `get list watch create update patch delete deletecollection`; for other paths the lower-case method. */
  readonly verb: string;
  readonly path: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** Path elements after the subresource (`proxy/a/b`). */
  readonly rest: readonly string[];
  /** As the query says it; absent when it does not. */
  readonly fieldSelector?: string;
}

export interface AuthorizationAttributes {
  readonly user: UserInfo;
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly isResourceRequest: boolean;
  readonly path: string;
  readonly fieldSelector?: string;
}

export interface Authorizer {
  authorize(
    attributes: AuthorizationAttributes,
  ): Promise<{ allowed: boolean; reason: string }> | { allowed: boolean; reason: string };
}

/** Who a request comes from; undefined = no credentials that this one knows. @throws StatusError 401 for bad ones. */
export interface Authenticator {
  authenticate(
    request: Pick<ApiRequest, "headers">,
    peer: { clientCertificate?: { commonName: string; organizations: readonly string[] } },
  ): Promise<UserInfo | undefined>;
}

export interface AdmissionAttributes {
  readonly operation: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  readonly kind: KindInfo;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** Mutating plugins change it in place or put another in its place. Absent for DELETE. */
  object: ApiObject | undefined;
  readonly old: ApiObject | undefined;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  /** CreateOptions, UpdateOptions, DeleteOptions of the request, with `kind` and `apiVersion`. */
  readonly options: Readonly<Record<string, unknown>>;
  /** What the mutating phase has called so far. */
  readonly reinvocation: Reinvocation;
  /** Adds a `Warning` header to the response. */
  warn(text: string): void;
}

/** One admission plugin. Throws a StatusError to refuse. */
export interface AdmissionPlugin {
  readonly name: string;
  handles(attributes: AdmissionAttributes): boolean;
  /** Mutating phase, before defaulting and validation. */
  admit?(attributes: AdmissionAttributes): Promise<void> | void;
  /** Validating phase. */
  validate?(attributes: AdmissionAttributes): Promise<void> | void;
}

/** Reads of stored objects from inside the server: admission, authorization, allocators. Objects are read-only. */
export interface Reader {
  get<T = ApiObject>(resource: Resource<T>, namespace: string | undefined, name: string): T | undefined;
  list<T = ApiObject>(resource: Resource<T>, namespace?: string): readonly T[];
  /** Called after every visible change of the resource. */
  onChange(resource: Resource, listener: (object: ApiObject, deleted: boolean) => void): Disposable;
}

/**
 * What a kind needs to do with the rest of the server around its writes (Service address allocation, finalizers of
 * namespaces, …). Runs after mutating admission and defaulting, before validation.
 */
export interface ResourceHooks {
  /** May change `object` and return an undo for when the write fails. */
  beforeCreate?(
    object: ApiObject,
    context: { dryRun: boolean },
  ): Promise<(() => void) | undefined> | (() => void) | undefined;
  beforeUpdate?(
    object: ApiObject,
    old: ApiObject,
    context: { dryRun: boolean; subresource: string },
  ): Promise<(() => void) | undefined> | (() => void) | undefined;
  afterDelete?(object: ApiObject): void;
}

/** A kind or subresource that is answered and not stored: reviews, token requests. */
export interface VirtualResource {
  /** The answer to a POST. `object` is the decoded, defaulted body; `parent` the object that a subresource belongs to. */
  create(
    object: ApiObject,
    context: { user: UserInfo; namespace: string; name: string; dryRun: boolean; parent?: ApiObject },
  ): Promise<ApiObject> | ApiObject;
}
