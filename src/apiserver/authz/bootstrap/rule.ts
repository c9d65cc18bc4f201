import type { PolicyRule } from "#kinds";

const words = (text: string): string[] => text.split(" ");

/** Rule of a role: space-separated API groups (`core` for the core group), resources, verbs and, where limited, names. */
export function allow(groups: string, resources: string, verbs: string, names?: string): PolicyRule {
  return {
    apiGroups: words(groups).map((group) => (group === "core" ? "" : group)),
    ...(names === undefined ? {} : { resourceNames: words(names) }),
    resources: words(resources),
    verbs: words(verbs),
  };
}

/** Rule about paths that are no resources. */
export function paths(urls: string, verbs: string): PolicyRule {
  return { nonResourceURLs: words(urls), verbs: words(verbs) };
}

/** Rules by the name of their role. */
export type RoleTable = Readonly<Record<string, readonly PolicyRule[]>>;
