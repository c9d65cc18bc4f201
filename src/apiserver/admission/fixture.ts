import type { ApiObject, KindInfo, Resource, UserInfo } from "#kinds";
import type { AdmissionAttributes, AdmissionPlugin, Reader } from "../ports.ts";
import { Reinvocation } from "./reinvocation.ts";

/** For tests: a Reader over a list that the test may change. */
export interface FakeReader extends Reader {
  put(resource: Resource, object: object): void;
  remove(resource: Resource, namespace: string | undefined, name: string): void;
}

export function createFakeReader(): FakeReader {
  const objects = new Map<string, Map<string, ApiObject>>();
  const listeners = new Map<string, Set<(object: ApiObject, deleted: boolean) => void>>();
  const idOf = (resource: Resource) => `${resource.group}/${resource.resource}`;
  const of = (resource: Resource) =>
    objects.get(idOf(resource)) ?? objects.set(idOf(resource), new Map()).get(idOf(resource))!;
  const tell = (resource: Resource, object: ApiObject, deleted: boolean) => {
    for (const listener of [...(listeners.get(idOf(resource)) ?? [])]) listener(object, deleted);
  };
  return {
    get: <T>(resource: Resource<T>, namespace: string | undefined, name: string) =>
      of(resource as Resource).get(`${namespace ?? ""}/${name}`) as T | undefined,
    list: <T>(resource: Resource<T>, namespace?: string) =>
      [...of(resource as Resource).values()].filter(
        (object) => !namespace || object.metadata.namespace === namespace,
      ) as T[],
    onChange(resource, listener) {
      const id = idOf(resource);
      const set = listeners.get(id) ?? new Set();
      listeners.set(id, set.add(listener));
      return { [Symbol.dispose]: () => void set.delete(listener) };
    },
    put(resource, value) {
      const object = value as ApiObject;
      of(resource).set(`${object.metadata.namespace ?? ""}/${object.metadata.name}`, object);
      tell(resource, object, false);
    },
    remove(resource, namespace, name) {
      const key = `${namespace ?? ""}/${name}`;
      const object = of(resource).get(key);
      of(resource).delete(key);
      if (object) tell(resource, object, true);
    },
  };
}

/** For tests: attributes of a call; `warnings` collects what plugins warn of. */
export function attributesOf(
  resource: Resource,
  parts: {
    object?: object;
    old?: object;
    operation?: AdmissionAttributes["operation"];
    subresource?: string;
    namespace?: string;
    name?: string;
    user?: UserInfo;
    dryRun?: boolean;
    options?: Record<string, unknown>;
  },
): AdmissionAttributes & { warnings: string[] } {
  const object = parts.object as ApiObject | undefined;
  const old = parts.old as ApiObject | undefined;
  const warnings: string[] = [];
  const meta = (object ?? old)?.metadata;
  return {
    operation: parts.operation ?? (old ? "UPDATE" : "CREATE"),
    kind: resource as unknown as KindInfo,
    subresource: parts.subresource ?? "",
    namespace: parts.namespace ?? meta?.namespace ?? "",
    name: parts.name ?? meta?.name ?? "",
    object,
    old,
    user: parts.user ?? { username: "jane", groups: ["system:authenticated"] },
    dryRun: parts.dryRun ?? false,
    options: parts.options ?? {},
    reinvocation: new Reinvocation(),
    warn: (text) => void warnings.push(text),
    warnings,
  };
}

/** For tests: both phases of a plugin, as the pipeline runs them. */
export async function run(plugin: AdmissionPlugin, attributes: AdmissionAttributes): Promise<void> {
  if (!plugin.handles(attributes)) return;
  await plugin.admit?.(attributes);
  await plugin.validate?.(attributes);
}
