import type { DeepReadonly } from "#base";
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding } from "#kinds";
import { annotationLines, type DescribeWriter, pairsLines } from "./writer.ts";

export function describeRole(writer: DescribeWriter, { metadata, rules = [] }: Role | ClusterRole): void {
  writer.line(0, `Name:\t${metadata.name}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
  writer.line(0, "PolicyRule:");
  writer.line(1, "Resources\tNon-Resource URLs\tResource Names\tVerbs");
  writer.line(1, "---------\t-----------------\t--------------\t-----");
  for (const { resource, urls, names, verbs } of rowsOf(rules))
    writer.line(1, `${resource}\t[${urls.join(" ")}]\t[${names.join(" ")}]\t[${verbs.join(" ")}]`);
}

export interface Row {
  readonly resource: string;
  readonly urls: readonly string[];
  readonly names: readonly string[];
  readonly verbs: readonly string[];
  /** Group and resource apart, for the order. */
  readonly group: string;
  readonly plain: string;
}

/** One row a resource, the verbs of all rules about it together. */
export function rowsOf(rules: readonly DeepReadonly<PolicyRule>[]): Row[] {
  const rows = new Map<string, Row>();
  for (const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [], verbs } of rules) {
    for (const url of nonResourceURLs)
      rows.set(`~${rows.size}`, { resource: "", urls: [url], names: [], verbs, group: "", plain: "" });
    for (const group of apiGroups)
      for (const plain of resources) {
        const [base, sub] = plain.split("/", 2);
        const resource = `${base}${group ? `.${group}` : ""}${sub ? `/${sub}` : ""}`;
        const key = `${resource} ${resourceNames.join()}`;
        const merged = [...new Set([...(rows.get(key)?.verbs ?? []), ...verbs])];
        rows.set(key, { resource, urls: [], names: resourceNames, verbs: merged, group, plain });
      }
  }
  return [...rows.values()].sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
}

/** Rules stand in the order of their texts: verbs first. */
const orderOf = ({ verbs, group, plain, names, urls }: Row) =>
  `[${verbs.join(" ")}],[${group}],[${plain}],[${names.join(" ")}],[${urls.join(" ")}]`;

export function describeBinding(
  writer: DescribeWriter,
  { metadata, roleRef, subjects = [] }: RoleBinding | ClusterRoleBinding,
): void {
  writer.line(0, `Name:\t${metadata.name}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
  writer.line(0, "Role:");
  writer.line(1, `Kind:\t${roleRef.kind}`);
  writer.line(1, `Name:\t${roleRef.name}`);
  writer.line(0, "Subjects:");
  writer.line(1, "Kind\tName\tNamespace");
  writer.line(1, "----\t----\t---------");
  for (const { kind, name, namespace = "" } of subjects) writer.line(1, `${kind}\t${name}\t${namespace}`);
}
