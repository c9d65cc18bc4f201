import { createHash } from "node:crypto";
import { type ApiRequest, type ApiResponse, failure, type KindInfo, type Scheme } from "#kinds";

/** Groups in the order of real servers' lists; groups that are not here come behind, by name. */
const PRIORITY = [
  "apiregistration.k8s.io",
  "apps",
  "events.k8s.io",
  "authentication.k8s.io",
  "authorization.k8s.io",
  "autoscaling",
  "batch",
  "certificates.k8s.io",
  "networking.k8s.io",
  "policy",
  "rbac.authorization.k8s.io",
  "storage.k8s.io",
  "admissionregistration.k8s.io",
  "apiextensions.k8s.io",
  "scheduling.k8s.io",
  "coordination.k8s.io",
  "node.k8s.io",
  "discovery.k8s.io",
  "resource.k8s.io",
  "flowcontrol.apiserver.k8s.io",
];

export interface DiscoveryOptions {
  /** `host:port` that clients are told. */
  serverAddress(): string;
}

/** Answers `/api`, `/apis` and below; undefined for other paths. */
export interface Discovery {
  handle(request: ApiRequest): ApiResponse | undefined;
}

export function createDiscovery(scheme: Scheme, options: DiscoveryOptions): Discovery {
  return {
    handle(request) {
      const parts = request.path.split("/").filter(Boolean);
      const [root, second, third] = parts;
      if (root === "api" && parts.length === 1)
        return aggregated(request, scheme, "core") ?? json(coreVersions(options));
      if (root === "apis" && parts.length === 1)
        return (
          aggregated(request, scheme, "groups") ??
          json({ kind: "APIGroupList", apiVersion: "v1", groups: groupsOf(scheme).map((group) => groupJson(group)) })
        );
      if (root === "apis" && parts.length === 2) {
        const group = groupsOf(scheme).find(({ name }) => name === second);
        return group ? json({ kind: "APIGroup", apiVersion: "v1", ...groupJson(group) }) : undefined;
      }
      if (root === "api" && parts.length === 2) return resourceList(scheme, "", second!);
      if (root === "apis" && parts.length === 3) return resourceList(scheme, second!, third!);
      return undefined;
    },
  };
}

interface Group {
  readonly name: string;
  /** Preferred first. */
  readonly versions: readonly { readonly version: string; readonly kinds: readonly KindInfo[] }[];
}

function groupsOf(scheme: Scheme): Group[] {
  const groups = new Map<string, Map<string, KindInfo[]>>();
  for (const kind of scheme.all()) {
    if (kind.group === "") continue;
    add(groups, kind);
  }
  const rank = (name: string) => (PRIORITY.includes(name) ? PRIORITY.indexOf(name) : PRIORITY.length);
  return [...groups]
    .sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map(([name, versions]) => ({ name, versions: ordered(versions) }));
}

function add(groups: Map<string, Map<string, KindInfo[]>>, kind: KindInfo): void {
  const versions = groups.get(kind.group) ?? new Map<string, KindInfo[]>();
  groups.set(kind.group, versions);
  const kinds = versions.get(kind.version) ?? [];
  versions.set(kind.version, kinds);
  kinds.push(kind);
}

function ordered(versions: Map<string, KindInfo[]>): Group["versions"] {
  return [...versions]
    .sort(([a], [b]) => compareVersions(a, b))
    .map(([version, kinds]) => ({ version, kinds: kinds.sort((a, b) => (a.resource < b.resource ? -1 : 1)) }));
}

/** v2 before v1 before v1beta2 before v1alpha1 before other names, as Kubernetes orders versions. */
export function compareVersions(a: string, b: string): number {
  const parse = (version: string) => {
    const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
    if (!match) return undefined;
    return [match[2] === undefined ? 2 : match[2] === "beta" ? 1 : 0, Number(match[1]), Number(match[3] ?? 0)];
  };
  const x = parse(a);
  const y = parse(b);
  if (!x || !y) return x ? -1 : y ? 1 : a < b ? -1 : 1;
  for (const i of [0, 1, 2]) if (x[i] !== y[i]) return y[i]! - x[i]!;
  return 0;
}

function groupJson({ name, versions }: Group) {
  const list = versions.map(({ version }) => ({ groupVersion: `${name}/${version}`, version }));
  return { name, versions: list, preferredVersion: list[0] };
}

function coreVersions({ serverAddress }: DiscoveryOptions) {
  return {
    kind: "APIVersions",
    versions: ["v1"],
    serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: serverAddress() }],
  };
}

function resourceList(scheme: Scheme, group: string, version: string): ApiResponse | undefined {
  const kinds = scheme.all().filter((kind) => kind.group === group && kind.version === version);
  if (kinds.length === 0) return undefined;
  const groupVersion = group ? `${group}/${version}` : version;
  const resources = kinds.flatMap((kind) => [
    ...(kind.verbs.length > 0 ? [resourceJson(kind)] : []),
    ...kind.subresources.map((sub) => subresourceJson(kind, sub)),
  ]);
  resources.sort((a, b) => (a.name < b.name ? -1 : 1));
  return json({ kind: "APIResourceList", ...(group ? { apiVersion: "v1" } : {}), groupVersion, resources });
}

function resourceJson(kind: KindInfo) {
  return {
    name: kind.resource,
    singularName: kind.singular,
    namespaced: kind.namespaced,
    kind: kind.kind,
    verbs: kind.verbs,
    ...(kind.shortNames.length > 0 ? { shortNames: kind.shortNames } : {}),
    ...(kind.categories.length > 0 ? { categories: kind.categories } : {}),
    ...(kind.verbs.includes("watch") ? { storageVersionHash: storageHash(kind) } : {}),
  };
}

function subresourceJson(kind: KindInfo, sub: KindInfo["subresources"][number]) {
  return {
    name: `${kind.resource}/${sub.name}`,
    singularName: "",
    namespaced: kind.namespaced,
    ...(sub.group === undefined ? {} : { group: sub.group }),
    ...(sub.version === undefined ? {} : { version: sub.version }),
    kind: sub.kind,
    verbs: sub.verbs,
  };
}

/** Opaque: the same while the kind is stored in the same version. */
function storageHash(kind: KindInfo): string {
  const { group, version } = kind.storage;
  return createHash("sha256").update(`${group}/${version}/${kind.kind}`).digest().subarray(0, 8).toString("base64");
}

const AGGREGATED = /application\/json;\s*g=apidiscovery\.k8s\.io;\s*v=(v2|v2beta1);\s*as=APIGroupDiscoveryList/;

/** The aggregated form, when the client asks for it before the old one. */
function aggregated(request: ApiRequest, scheme: Scheme, which: "core" | "groups"): ApiResponse | undefined {
  const version = (request.headers.accept ?? "")
    .split(",")
    .map((entry) => AGGREGATED.exec(entry.replaceAll(" ", ""))?.[1])
    .find((v) => v !== undefined);
  if (!version) return undefined;
  const groups = which === "core" ? [coreGroup(scheme)] : groupsOf(scheme);
  const items = groups.map((group) => ({
    metadata: { ...(group.name ? { name: group.name } : {}), creationTimestamp: null },
    versions: group.versions.map(({ version, kinds }) => ({
      version,
      resources: kinds.filter((kind) => kind.verbs.length > 0 || kind.subresources.length > 0).map(discoveryJson),
      freshness: "Current",
    })),
  }));
  const body = Buffer.from(
    JSON.stringify({
      kind: "APIGroupDiscoveryList",
      apiVersion: `apidiscovery.k8s.io/${version}`,
      metadata: {},
      items,
    }),
  );
  const etag = `"${createHash("sha512").update(body).digest("hex").toUpperCase()}"`;
  const contentType = `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
  const headers = { etag, vary: "Accept", "cache-control": "public" };
  if (request.headers["if-none-match"] === etag)
    return { code: 304, headers, body: { kind: "bytes", bytes: Buffer.alloc(0), contentType } };
  return { code: 200, headers, body: { kind: "bytes", bytes: body, contentType } };
}

function coreGroup(scheme: Scheme): Group {
  const versions = new Map<string, KindInfo[]>([["v1", scheme.all().filter((kind) => kind.group === "")]]);
  return { name: "", versions: ordered(versions) };
}

function discoveryJson(kind: KindInfo) {
  const [group, version] = [kind.group, kind.version];
  const scope = kind.namespaced ? "Namespaced" : "Cluster";
  const subresources = kind.subresources.map((sub) => ({
    subresource: sub.name,
    responseKind: { group: sub.group ?? group, version: sub.version ?? version, kind: sub.kind },
    verbs: sub.verbs,
  }));
  return {
    resource: kind.resource,
    responseKind: { group, version, kind: kind.kind },
    scope,
    singularResource: kind.singular,
    verbs: kind.verbs,
    ...(kind.shortNames.length > 0 ? { shortNames: kind.shortNames } : {}),
    ...(kind.categories.length > 0 ? { categories: kind.categories } : {}),
    ...(subresources.length > 0 ? { subresources } : {}),
  };
}

function json(object: object): ApiResponse {
  return { code: 200, headers: {}, body: { kind: "object", object } };
}

/** 404 for paths that nothing serves, in the original's words. */
export function pathNotFound(): Error {
  return failure(404, "NotFound", "the server could not find the requested resource", {});
}
