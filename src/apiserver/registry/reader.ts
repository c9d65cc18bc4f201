import type { ApiObject, Resource, Scheme } from "#kinds";
import type { Store } from "#store";
import type { Reader } from "../ports.ts";
import { keyOf, prefixOf } from "./keys.ts";
import { viewOf } from "./view.ts";

/** Reads of the store for the server's own parts. */
export function createReader(store: Store, scheme: Scheme): Reader {
  const kindOf = (resource: Resource<unknown>) => {
    const kind = scheme.byResource(resource.group, resource.version, resource.resource);
    if (!kind) throw new Error(`no kind is served at ${resource.group}/${resource.version}/${resource.resource}`);
    return kind;
  };
  return {
    get<T>(resource: Resource<T>, namespace: string | undefined, name: string) {
      const kind = kindOf(resource);
      const stored = store.get(keyOf(kind, namespace, name));
      return stored && (viewOf(kind, stored).object as T);
    },
    list<T>(resource: Resource<T>, namespace?: string) {
      const kind = kindOf(resource);
      return store.list(prefixOf(kind, namespace)).items.map((item) => viewOf(kind, item).object as T);
    },
    onChange(resource, listener) {
      const kind = kindOf(resource);
      return store.watch(prefixOf(kind), store.revision, (change) =>
        listener(viewOf(kind, change.current).object as ApiObject, change.type === "delete"),
      );
    },
  };
}
