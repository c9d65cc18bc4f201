/**
 * Paths of fields, as `managedFields` keep them. A path is a list of elements in their FieldsV1 form: `f:<name>`,
 * `k:<json of the key fields>`, `v:<json>`. A set may hold a path and paths below it. Sets are not changed once they are made.
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/#managed-fields
 */
export interface FieldSet {
  /** Elements at which a path of the set ends. */
  readonly members: ReadonlySet<string>;
  /** Elements behind which paths go on; never to an empty set. */
  readonly children: ReadonlyMap<string, FieldSet>;
}

interface Building extends FieldSet {
  readonly members: Set<string>;
  readonly children: Map<string, Building>;
}

export const EMPTY: FieldSet = { members: new Set(), children: new Map() };

/** Gathers paths. Hand out `set` only when all are in. */
export class FieldSetBuilder {
  readonly #root: Building = { members: new Set(), children: new Map() };

  insert(path: readonly string[]): void {
    const last = path.length - 1;
    if (last < 0) return;
    let node = this.#root;
    for (let i = 0; i < last; i++) {
      const element = path[i]!;
      let child = node.children.get(element);
      if (!child) {
        child = { members: new Set(), children: new Map() };
        node.children.set(element, child);
      }
      node = child;
    }
    node.members.add(path[last]!);
  }

  get set(): FieldSet {
    return this.#root;
  }
}

/** A set of these paths. */
export function fieldSet(...paths: readonly (readonly string[])[]): FieldSet {
  const builder = new FieldSetBuilder();
  for (const path of paths) builder.insert(path);
  return builder.set;
}

export const isEmpty = (set: FieldSet): boolean => set.members.size === 0 && set.children.size === 0;

export function has(set: FieldSet, path: readonly string[]): boolean {
  let node: FieldSet | undefined = set;
  for (const element of path.slice(0, -1)) node = node?.children.get(element);
  return node?.members.has(path.at(-1)!) ?? false;
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(a)) return b;
  if (isEmpty(b) || a === b) return a;
  const children = new Map(a.children);
  for (const [element, child] of b.children) {
    const known = children.get(element);
    children.set(element, known ? union(known, child) : child);
  }
  return { members: a.members.union(b.members), children };
}

/** Paths that are in both. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  const children = new Map<string, FieldSet>();
  for (const [element, child] of a.children) {
    const other = b.children.get(element);
    const both = other ? intersection(child, other) : EMPTY;
    if (!isEmpty(both)) children.set(element, both);
  }
  return { members: a.members.intersection(b.members), children };
}

/** Paths of `a` that are not in `b`. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(b)) return a;
  const children = new Map<string, FieldSet>();
  for (const [element, child] of a.children) {
    const other = b.children.get(element);
    const rest = other ? difference(child, other) : child;
    if (!isEmpty(rest)) children.set(element, rest);
  }
  return { members: a.members.difference(b.members), children };
}

/** Paths of `a` that are neither in `b` nor below a path of `b`. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(b)) return a;
  const children = new Map<string, FieldSet>();
  for (const [element, child] of a.children) {
    if (b.members.has(element)) continue;
    const other = b.children.get(element);
    const rest = other ? recursiveDifference(child, other) : child;
    if (!isEmpty(rest)) children.set(element, rest);
  }
  return { members: a.members.difference(b.members), children };
}

export function equalSets(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true;
  if (a.members.size !== b.members.size || a.children.size !== b.children.size) return false;
  if (!a.members.isSubsetOf(b.members)) return false;
  for (const [element, child] of a.children) {
    const other = b.children.get(element);
    if (!other || !equalSets(child, other)) return false;
  }
  return true;
}

/** All paths, in order. */
export function* pathsOf(set: FieldSet, prefix: readonly string[] = []): Generator<readonly string[]> {
  for (const element of [...set.members].sort(byElement)) yield [...prefix, element];
  for (const element of [...set.children.keys()].sort(byElement))
    yield* pathsOf(set.children.get(element)!, [...prefix, element]);
}

function elementsOf(set: FieldSet): string[] {
  return [...new Set([...set.members, ...set.children.keys()])].sort(byElement);
}

/** Fields, then list items by key, then by value; each in the order of its text. */
function byElement(a: string, b: string): number {
  const rank = RANKS.indexOf(a[0]!) - RANKS.indexOf(b[0]!);
  return rank || (a < b ? -1 : a > b ? 1 : 0);
}
const RANKS = "fkvi";

type FieldsV1 = { readonly [element: string]: FieldsV1 };

/** The JSON form: `{"f:spec":{"f:ports":{".":{},"k:{\"name\":\"x\"}":{}}}}`. */
export function toFieldsV1(set: FieldSet): FieldsV1 {
  const fields: Record<string, FieldsV1> = {};
  for (const element of elementsOf(set)) {
    const child = set.children.get(element);
    fields[element] = !child
      ? LEAF
      : set.members.has(element)
        ? { ".": LEAF, ...toFieldsV1(child) }
        : toFieldsV1(child);
  }
  return fields;
}
const LEAF: FieldsV1 = {};

/** @throws Error for what is no FieldsV1 */
export function fromFieldsV1(fields: unknown): FieldSet {
  const members = new Set<string>();
  const children = new Map<string, FieldSet>();
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) throw new Error("fieldsV1 is no object");
  for (const [text, below] of Object.entries(fields as Record<string, unknown>)) {
    if (text === ".") continue;
    const element = canonicalElement(text);
    const child = fromFieldsV1(below);
    if (isEmpty(child) || Object.hasOwn(below as object, ".")) members.add(element);
    if (!isEmpty(child)) children.set(element, child);
  }
  return { members, children };
}

function canonicalElement(text: string): string {
  const type = text.slice(0, 2);
  if (type === "f:") return text;
  if (type === "v:") return `v:${JSON.stringify(JSON.parse(text.slice(2)))}`;
  if (type === "k:") return keyElement(Object.entries(JSON.parse(text.slice(2)) as Record<string, unknown>));
  if (type === "i:" && /^\d+$/.test(text.slice(2))) return text;
  throw new Error(`unknown path element ${JSON.stringify(text)}`);
}

/** The element of a list item that is told apart by these fields. */
export function keyElement(fields: readonly (readonly [string, unknown])[]): string {
  const sorted = [...fields].sort(([a], [b]) => (a < b ? -1 : 1));
  return `k:{${sorted.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(",")}}`;
}

/** As conflicts name it: `.spec.template.spec.containers[name="x"].image`. */
export function pathText(path: readonly string[]): string {
  return path
    .map((element) => {
      const text = element.slice(2);
      if (element.startsWith("f:")) return `.${text}`;
      if (element.startsWith("v:")) return `[=${text}]`;
      if (element.startsWith("i:")) return `[${text}]`;
      const fields = Object.entries(JSON.parse(text) as Record<string, unknown>);
      return `[${fields.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(",")}]`;
    })
    .join("");
}
