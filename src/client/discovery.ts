import { failure, isStatus, type Resource } from "#kinds";
import type { Client } from "./port.ts";

/** A resource as discovery tells it. */
export interface ServedResource extends Resource {
  /** `pod` */
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly string[];
  /** `status`, `scale`, `log`, … */
  readonly subresources: readonly string[];
}

/** What the server serves; asked for once and kept. */
export interface Discovery {
  /** The preferred version of every resource, groups in the server's order. */
  preferred(): Promise<readonly ServedResource[]>;
  /** Every version. */
  all(): Promise<readonly ServedResource[]>;
  /**
   * The resource that a person means: `po`, `pod`, `pods`, `Pod`, `deployments.apps`, `deployments.v1.apps`.
   * @throws StatusError 404 in kubectl's words
   */
  named(name: string): Promise<ServedResource>;
  /** The resource of an object. @throws StatusError 404 in kubectl's words */
  ofKind(apiVersion: string, kind: string): Promise<ServedResource>;
  /** Members of a category (`all`); undefined when there is no such category. */
  category(name: string): Promise<readonly ServedResource[] | undefined>;
  /** Asks again at the next call: a definition was added. */
  forget(): void;
}

interface GroupDiscoveryList {
  items?: {
    metadata: { name?: string };
    versions: { version: string; resources?: ResourceDiscovery[] }[];
  }[];
}
interface ResourceDiscovery {
  resource: string;
  responseKind?: { kind: string; group?: string; version?: string };
  scope: "Namespaced" | "Cluster";
  singularResource: string;
  verbs: string[];
  shortNames?: string[];
  categories?: string[];
  subresources?: { subresource: string }[];
}

const ACCEPT =
  "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

export function createDiscovery(client: Pick<Client, "request">): Discovery {
  let known: Promise<readonly ServedResource[]> | undefined;
  const all = () => {
    known ??= readAll(client).catch((error: unknown) => {
      known = undefined;
      throw error;
    });
    return known;
  };
  const preferred = async () => firstVersions(await all());
  return {
    all,
    preferred,
    async named(name) {
      const found = findNamed(await all(), name);
      if (found) return found;
      throw failure(404, "NotFound", `the server doesn't have a resource type "${name}"`);
    },
    async ofKind(apiVersion, kind) {
      const { group, version } = groupVersionOf(apiVersion);
      const found = (await all()).find((r) => r.kind === kind && r.group === group && r.version === version);
      if (found) return found;
      throw failure(404, "NotFound", `no matches for kind "${kind}" in version "${apiVersion}"`);
    },
    async category(name) {
      const members = (await preferred()).filter((resource) => resource.categories.includes(name));
      return members.length > 0 ? members : undefined;
    },
    forget() {
      known = undefined;
    },
  };
}

export function groupVersionOf(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf("/");
  return { group: slash < 0 ? "" : apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

async function readAll(client: Pick<Client, "request">): Promise<ServedResource[]> {
  const lists = await Promise.all(
    ["/api", "/apis"].map(
      (path) =>
        client.request({ method: "GET", path, headers: { accept: ACCEPT } }).catch((error: unknown) => {
          // a server may serve the core group alone
          if (path === "/apis" && isStatus(error, "NotFound")) return {};
          throw error;
        }) as Promise<GroupDiscoveryList>,
    ),
  );
  return lists.flatMap((list) =>
    (list.items ?? []).flatMap((group) =>
      group.versions.flatMap(({ version, resources = [] }) =>
        resources.map((resource) => servedOf(group.metadata.name ?? "", version, resource)),
      ),
    ),
  );
}

function servedOf(group: string, version: string, found: ResourceDiscovery): ServedResource {
  return {
    group,
    version,
    resource: found.resource,
    kind: found.responseKind?.kind ?? "",
    namespaced: found.scope === "Namespaced",
    singular: found.singularResource || (found.responseKind?.kind ?? "").toLowerCase(),
    shortNames: found.shortNames ?? [],
    categories: found.categories ?? [],
    verbs: found.verbs,
    subresources: (found.subresources ?? []).map((sub) => sub.subresource),
  };
}

/** Of each group's resources the first version that has them. */
function firstVersions(all: readonly ServedResource[]): ServedResource[] {
  const seen = new Set<string>();
  return all.filter(({ resource, group }) => {
    const key = `${resource}.${group}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

function findNamed(all: readonly ServedResource[], name: string): ServedResource | undefined {
  const [first = "", second = "", ...rest] = name.split(".");
  const exact = (candidate: ServedResource, word: string) => {
    const lower = word.toLowerCase();
    return candidate.resource === lower || candidate.singular === lower || candidate.kind.toLowerCase() === lower;
  };
  const short = (candidate: ServedResource, word: string) => candidate.shortNames.includes(word.toLowerCase());
  for (const fits of [exact, short]) {
    if (second === "") {
      const found = all.find((candidate) => fits(candidate, first));
      if (found) return found;
      continue;
    }
    const versioned = all.find((c) => fits(c, first) && c.version === second && c.group === rest.join("."));
    if (versioned) return versioned;
    const grouped = all.find((c) => fits(c, first) && c.group === [second, ...rest].join("."));
    if (grouped) return grouped;
  }
  return undefined;
}
