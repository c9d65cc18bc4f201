import type { Resource } from "#kinds";
import { createInformer, type InformerDeps, type InformerFilter } from "./informer.ts";
import type { Informer, Informers } from "./port.ts";

/** Informers shared by all who ask for the same resource and filter; each starts when it is first asked for. */
export function createInformers(deps: InformerDeps): Informers {
  const running = new Map<string, Informer<unknown> & { stop(): void }>();
  return {
    for<T>(resource: Resource<T>, filter: InformerFilter = {}): Informer<T> {
      const { group, version, resource: plural } = resource;
      const key = JSON.stringify([
        group,
        version,
        plural,
        filter.namespace,
        filter.labelSelector,
        filter.fieldSelector,
      ]);
      const known = running.get(key);
      if (known) return known as Informer<T>;
      const informer = createInformer(deps, resource, filter);
      running.set(key, informer as Informer<unknown> & { stop(): void });
      informer.start();
      return informer;
    },
    async [Symbol.asyncDispose]() {
      for (const informer of running.values()) informer.stop();
      running.clear();
    },
  };
}
