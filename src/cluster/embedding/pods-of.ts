import { CodedError, type DeepReadonly } from "#base";
import type { Client, Discovery } from "#client";
import { formatSelector, isPodReady, type Pod, resources, type Service } from "#kinds";
import { type Located, locate, type ObjectRef } from "./reference.ts";

interface Selecting {
  readonly spec?: { readonly selector?: Parameters<typeof formatSelector>[0] };
}

/** The pods that an object stands for: itself, those that a workload's selector or a service names; ready and newest first. */
export async function podsOf(
  client: Client,
  discovery: Discovery,
  ref: ObjectRef,
  namespace: string,
): Promise<readonly DeepReadonly<Pod>[]> {
  // a bare name is a pod's
  const at = await locate(discovery, typeof ref === "string" && !ref.includes("/") ? `pod/${ref}` : ref, namespace);
  const object = await client.get(at.resource, at.name, { namespace: at.namespace });
  if (at.resource.resource === "pods") return [object as unknown as DeepReadonly<Pod>];
  const selector = selectorText(at, object as unknown as Selecting);
  const { items } = await client.list(resources.pods, { namespace: at.namespace, labelSelector: selector });
  if (items.length === 0) throw new CodedError("no-pods", `${at.resource.singular}/${at.name} has no pods`);
  return [...items].sort(
    (a, b) =>
      Number(isPodReady(b as Pod)) - Number(isPodReady(a as Pod)) ||
      String(b.metadata.creationTimestamp).localeCompare(String(a.metadata.creationTimestamp)),
  );
}

function selectorText({ resource, name }: Located, { spec }: Selecting): string {
  const selector = spec?.selector;
  if (!selector) throw new CodedError("no-pods", `${resource.singular}/${name} selects no pods`);
  if (resource.resource !== "services" && resource.resource !== "replicationcontrollers")
    return formatSelector(selector);
  return Object.entries(selector as unknown as Record<string, string>)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
}

/** The container's port that a service's port means; other objects' ports are the containers' own. */
export async function targetPort(
  client: Client,
  discovery: Discovery,
  ref: ObjectRef,
  namespace: string,
  port: number,
  pod: DeepReadonly<Pod>,
): Promise<number> {
  if (typeof ref === "string" && !ref.includes("/")) return port;
  const at = await locate(discovery, ref, namespace);
  if (at.resource.resource !== "services") return port;
  const service = (await client.get(at.resource, at.name, {
    namespace: at.namespace,
  })) as unknown as DeepReadonly<Service>;
  const found = service.spec?.ports?.find((one) => one.port === port);
  if (!found) throw new CodedError("no-port", `service/${at.name} has no port ${port}`);
  const target = found.targetPort ?? found.port;
  if (typeof target === "number") return target;
  const named = pod.spec.containers.flatMap((c) => c.ports ?? []).find((one) => one.name === target);
  if (!named) throw new CodedError("no-port", `pod/${pod.metadata.name} has no port named "${target}"`);
  return named.containerPort;
}
