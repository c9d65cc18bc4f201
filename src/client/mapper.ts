import { failure, type Resource } from "#kinds";
import type { Client } from "./port.ts";

interface ResourceList {
  resources: { name: string; kind: string; namespaced: boolean; singularName?: string; shortNames?: string[] }[];
}

/** Finds where a kind is served, by discovery (`/api/v1`, `/apis/<group>/<version>`); what was found is remembered. */
export interface Mapper {
  /** @throws StatusError in kubectl's words when nothing serves the kind */
  resourceOf(apiVersion: string, kind: string): Promise<Resource>;
}

export function createMapper(client: Client): Mapper {
  const known = new Map<string, Resource>();
  return {
    async resourceOf(apiVersion, kind) {
      const key = `${apiVersion} ${kind}`;
      const found = known.get(key);
      if (found) return found;
      const slash = apiVersion.indexOf("/");
      const group = slash < 0 ? "" : apiVersion.slice(0, slash);
      const version = apiVersion.slice(slash + 1);
      const path = group ? `/apis/${group}/${version}` : `/api/${version}`;
      const list = (await client.request({ method: "GET", path }).catch(() => undefined)) as ResourceList | undefined;
      for (const item of list?.resources ?? []) {
        if (item.name.includes("/")) continue;
        known.set(`${apiVersion} ${item.kind}`, {
          group,
          version,
          resource: item.name,
          kind: item.kind,
          namespaced: item.namespaced,
        });
      }
      const resource = known.get(key);
      if (resource) return resource;
      throw failure(404, "NotFound", `no matches for kind "${kind}" in version "${apiVersion}"`);
    },
  };
}
