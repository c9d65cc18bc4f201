/**
 * Replaces `$(NAME)` by what `lookup` gives; `$$` stands for one `$`. A reference that `lookup` does not know and anything
 * that is not a reference stay as written.
 *
 * Source: https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
 */
export function expand(input: string, lookup: (name: string) => string | undefined): string {
  return input.replace(/\$(?:\$|\(([^)]*)\))/g, (written, name: string | undefined) =>
    name === undefined ? "$" : (lookup(name) ?? written),
  );
}

/** A lookup over several maps, the first that has the name wins. */
export function lookupIn(...maps: readonly ReadonlyMap<string, string>[]): (name: string) => string | undefined {
  return (name) => {
    for (const map of maps) {
      const value = map.get(name);
      if (value !== undefined) return value;
    }
    return undefined;
  };
}

/**
 * Expands a `subPathExpr`. Unlike elsewhere every variable must be there.
 *
 * @throws Error `missing value for A, B`
 */
export function expandStrict(input: string, values: ReadonlyMap<string, string>): string {
  const missing = new Set<string>();
  const result = expand(input, (name) => {
    const value = values.get(name);
    if (!value) missing.add(name);
    return value ?? "";
  });
  if (missing.size > 0) throw new Error(`missing value for ${[...missing].sort().join(", ")}`);
  return result;
}
