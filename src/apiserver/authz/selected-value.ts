/** The value that a field selector (`metadata.name=a,spec.x!=b`) asks a field to have; undefined when it does not. */
export function selectedValue(selector: string | undefined, field: string): string | undefined {
  if (!selector) return undefined;
  for (const term of selector.split(/(?<!\\),/)) {
    const [, name = "", value = ""] = /^\s*([^=!]+?)\s*==?(.*)$/.exec(term) ?? [];
    if (name === field) return value.trim().replace(/\\([\\,=])/g, "$1");
  }
  return undefined;
}
