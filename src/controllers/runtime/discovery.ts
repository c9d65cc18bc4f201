import type { Client } from "#client";
import type { Resource } from "#kinds";

export interface DiscoveredResource extends Resource {
  readonly verbs: readonly string[];
}

interface GroupList {
  groups: { name: string; preferredVersion: { groupVersion: string }; versions: { groupVersion: string }[] }[];
}
interface ResourceList {
  resources: { name: string; kind: string; namespaced: boolean; verbs: string[] }[];
}

/**
 * Every resource that is served, each in its preferred version (or the first that has it). `failed` names the groups that
 * could not be asked, an aggregated API that is down for example.
 */
export async function discover(
  client: Client,
): Promise<{ resources: DiscoveredResource[]; failed: Map<string, unknown> }> {
  const { groups } = (await client.request({ method: "GET", path: "/apis" })) as GroupList;
  const versions = ["v1"];
  for (const { preferredVersion, versions: all } of groups) {
    const others = all.map(({ groupVersion }) => groupVersion).filter((one) => one !== preferredVersion.groupVersion);
    versions.push(preferredVersion.groupVersion, ...others);
  }
  const failed = new Map<string, unknown>();
  const lists = await Promise.all(
    versions.map(async (groupVersion) => {
      const path = groupVersion === "v1" ? "/api/v1" : `/apis/${groupVersion}`;
      try {
        return { groupVersion, list: (await client.request({ method: "GET", path })) as ResourceList };
      } catch (error) {
        failed.set(groupVersion, error);
        return { groupVersion, list: { resources: [] } };
      }
    }),
  );
  const found = new Map<string, DiscoveredResource>();
  for (const { groupVersion, list } of lists) {
    const [version = "", group = ""] = groupVersion.split("/").reverse();
    for (const { name, kind, namespaced, verbs } of list.resources ?? []) {
      if (name.includes("/") || found.has(`${group}/${name}`)) continue;
      found.set(`${group}/${name}`, { group, version, resource: name, kind, namespaced, verbs });
    }
  }
  return { resources: [...found.values()], failed };
}
