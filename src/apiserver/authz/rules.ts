import type { DeepReadonly } from "#base";
import type { PolicyRule } from "#kinds";
import type { AuthorizationAttributes } from "../ports.ts";

type Rule = DeepReadonly<PolicyRule>;

/** True when one rule alone allows the request. https://kubernetes.io/docs/reference/access-authn-authz/rbac/ */
export function ruleAllows(rule: Rule, attributes: AuthorizationAttributes): boolean {
  if (!matchesWord(rule.verbs, attributes.verb)) return false;
  if (!attributes.isResourceRequest) return coversPath(rule.nonResourceURLs, attributes.path);
  return (
    matchesWord(rule.apiGroups, attributes.group) &&
    matchesResource(rule.resources, attributes.resource, attributes.subresource) &&
    matchesName(rule.resourceNames, attributes.name)
  );
}

function matchesWord(words: readonly string[] | undefined, word: string): boolean {
  if (!words) return false;
  for (const one of words) if (one === "*" || one === word) return true;
  return false;
}

/** `pods`, `pods/log`, `*` for all, and `*` + `/scale` for that subresource of all. */
function matchesResource(words: readonly string[] | undefined, resource: string, subresource: string): boolean {
  if (!words) return false;
  const full = subresource ? `${resource}/${subresource}` : resource;
  for (const one of words) {
    if (one === "*" || one === full) return true;
    if (subresource && one.length === subresource.length + 2 && one.startsWith("*/") && one.endsWith(subresource))
      return true;
  }
  return false;
}

/** A rule without names is about all. */
function matchesName(names: readonly string[] | undefined, name: string): boolean {
  return !names || names.length === 0 || names.includes(name);
}

/** `/healthz`, `*`, or everything below by a star at the end: `/apis/*`. */
function coversPath(urls: readonly string[] | undefined, path: string): boolean {
  if (!urls) return false;
  for (const url of urls) {
    if (url === "*" || url === path) return true;
    if (url.endsWith("*") && path.startsWith(url.replace(/\*+$/, ""))) return true;
  }
  return false;
}

/** What of `wanted` the rules `held` do not grant, in the smallest pieces. */
export function uncovered(held: readonly Rule[], wanted: readonly Rule[]): PolicyRule[] {
  return wanted.flatMap(pieces).filter((piece) => !held.some((rule) => grants(rule, piece)));
}

/** A rule as rules of one verb and one resource, name or path each. */
function pieces(rule: Rule): PolicyRule[] {
  const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [], verbs } = rule;
  const ofResources = apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb): PolicyRule[] => {
        const piece = { apiGroups: [group], resources: [resource], verbs: [verb] };
        return resourceNames.length > 0 ? resourceNames.map((name) => ({ ...piece, resourceNames: [name] })) : [piece];
      }),
    ),
  );
  const ofPaths = nonResourceURLs.flatMap((url) => verbs.map((verb) => ({ nonResourceURLs: [url], verbs: [verb] })));
  return [...ofResources, ...ofPaths];
}

function grants(rule: Rule, piece: PolicyRule): boolean {
  const has = (words: readonly string[] | undefined, asked: readonly string[] | undefined) =>
    (words ?? []).includes("*") || (asked ?? []).every((word) => words?.includes(word));
  if (!has(rule.verbs, piece.verbs)) return false;
  if (piece.nonResourceURLs) return piece.nonResourceURLs.every((url) => coversPath(rule.nonResourceURLs, url));
  const names = rule.resourceNames ?? [];
  return (
    has(rule.apiGroups, piece.apiGroups) &&
    (piece.resources ?? []).every((resource) => grantsResource(rule.resources, resource)) &&
    (names.length === 0 || ((piece.resourceNames?.length ?? 0) > 0 && has(names, piece.resourceNames)))
  );
}

function grantsResource(words: readonly string[] | undefined, wanted: string): boolean {
  const [resource = "", subresource = ""] = wanted.split("/");
  return matchesResource(words, resource, subresource);
}
