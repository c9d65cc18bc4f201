import type { KindInfo } from "#kinds";

/** `/<group>/<resource>/`, "core" standing for the core group: every stored object of a kind. */
export function prefixOf(kind: KindInfo, namespace?: string): string {
  const { group, resource } = kind.storage;
  const root = `/${group || "core"}/${resource}/`;
  return namespace ? `${root}${namespace}/` : root;
}

/** `/<group>/<resource>/[<namespace>/]<name>` */
export function keyOf(kind: KindInfo, namespace: string | undefined, name: string): string {
  return kind.namespaced ? `${prefixOf(kind, namespace)}${name}` : `${prefixOf(kind)}${name}`;
}
