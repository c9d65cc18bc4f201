import type { Resource } from "#kinds";

/** `/apis/apps/v1/namespaces/x/deployments/web/scale` */
export function pathOf(
  resource: Resource<unknown>,
  at: { namespace?: string | undefined; name?: string | undefined; subresource?: string | undefined },
): string {
  const root = resource.group ? `/apis/${resource.group}/${resource.version}` : `/api/${resource.version}`;
  const space = resource.namespaced && at.namespace ? `/namespaces/${encodeURIComponent(at.namespace)}` : "";
  const name = at.name === undefined ? "" : `/${encodeURIComponent(at.name)}`;
  const sub = at.subresource ? `/${at.subresource}` : "";
  return `${root}${space}/${resource.resource}${name}${sub}`;
}

/** A query of the given values; absent ones are left out. */
export function queryOf(values: Readonly<Record<string, string | number | boolean | undefined>>): URLSearchParams {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) if (value !== undefined) query.set(key, String(value));
  return query;
}
