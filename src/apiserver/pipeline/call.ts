import type { Clock, Logger, Random } from "#base";
import type { ApiObject, ApiRequest, KindInfo, NodeConnector, Scheme, UserInfo } from "#kinds";
import type { Store } from "#store";
import type { AdmissionPlugin, Authorizer, Reader, RequestInfo, ResourceHooks, VirtualResource } from "../ports.ts";

/** What the server is made of; handed to every verb. */
export interface ServerContext {
  readonly store: Store;
  readonly scheme: Scheme;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly authorizer: Authorizer;
  readonly reader: Reader;
  /** In order; mutating phase first, then the validating one. */
  readonly admission: readonly AdmissionPlugin[];
  /** By `group/resource`. */
  readonly hooks: ReadonlyMap<string, ResourceHooks>;
  /** By `group/resource` or `group/resource/subresource`: kinds that are answered and not stored. */
  readonly virtual: ReadonlyMap<string, VirtualResource>;
  /** The agent of a node. */
  connector(node: string): NodeConnector | undefined;
}

/** One authorized call about a kind. */
export interface Call {
  readonly server: ServerContext;
  readonly request: ApiRequest;
  readonly info: RequestInfo;
  readonly kind: KindInfo;
  readonly user: UserInfo;
  /** Texts of `Warning` headers, each once. */
  readonly warnings: Set<string>;
}

export function isDryRun(call: Call, body?: { dryRun?: unknown }): boolean {
  return call.request.query.has("dryRun") || (Array.isArray(body?.dryRun) && body.dryRun.length > 0);
}

/** `name` of an object for messages, also before a generated name is there. */
export function nameOf(object: ApiObject): string {
  return object.metadata.name || object.metadata.generateName || "";
}
