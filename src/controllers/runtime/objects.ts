import type { Clock, DeepReadonly } from "#base";
import type { Client, Informer } from "#client";
import { type ApiObject, isStatus, type ObjectMeta, type Resource } from "#kinds";

type Meta = DeepReadonly<{ metadata: ObjectMeta }>;

/** `namespace/name`, or `name` for a cluster-scoped object: the keys of queues. */
export const keyOf = ({ metadata }: Meta): string =>
  metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name;

export function splitKey(key: string): { namespace: string | undefined; name: string } {
  const slash = key.indexOf("/");
  return slash < 0
    ? { namespace: undefined, name: key }
    : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** The object that a key names, from the cache. */
export function fromCache<T>(informer: Informer<T>, key: string): DeepReadonly<T> | undefined {
  const { namespace, name } = splitKey(key);
  return informer.get(namespace, name);
}

/** RFC 3339 with whole seconds, as metav1.Time is written. */
export const timestamp = (clock: Clock): string => formatTime(clock.now());
export const formatTime = (milliseconds: number): string => `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;

/** Milliseconds since 1970; 0 for an absent time. */
export const timeOf = (text: string | null | undefined): number => (text ? Date.parse(text) : 0);

/** A shallow copy to change fields of, for sending; what is below stays shared and read-only. */
export const copyOf = <T>(_resource: Resource<T>, object: DeepReadonly<T>): T => ({ ...object }) as T;

/** Writes the status subresource, on the condition that the object is still the one that was looked at. */
export const writeStatus = <T extends { status?: unknown }>(
  client: Client,
  resource: Resource<T>,
  object: DeepReadonly<T>,
  status: T["status"],
): Promise<DeepReadonly<T>> =>
  client.update(resource, { ...copyOf(resource, object), status }, { subresource: "status" });

/** By creation, then name. */
export function byCreation(a: Meta, b: Meta): number {
  const order = timeOf(a.metadata.creationTimestamp) - timeOf(b.metadata.creationTimestamp);
  return order || (a.metadata.name < b.metadata.name ? -1 : a.metadata.name > b.metadata.name ? 1 : 0);
}

/** True when a create was refused because its namespace is being deleted: nothing to retry. */
export function isNamespaceTerminating(error: unknown): boolean {
  return (
    isStatus(error, "Forbidden") &&
    Boolean(error.status.details?.causes?.some(({ reason }) => reason === "NamespaceTerminating"))
  );
}

/** Resolves to undefined when the object is gone. */
export async function ignoreNotFound<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (isStatus(error, "NotFound")) return undefined;
    throw error;
  }
}

/** A whole number, or a percentage of `total`. */
export function scaledValue(value: number | string | undefined, total: number, round: "up" | "down"): number {
  if (value === undefined) return 0;
  const text = String(value);
  if (!text.endsWith("%")) return Number(text);
  const exact = (Number(text.slice(0, -1)) * total) / 100;
  return round === "up" ? Math.ceil(exact) : Math.floor(exact);
}

export type AnyObject = DeepReadonly<ApiObject>;
