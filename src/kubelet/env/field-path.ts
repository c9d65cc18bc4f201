import type { DeepReadonly } from "#base";
import type { Pod } from "#kinds";

/** What a fieldRef can ask for that the pod's spec and metadata do not hold. */
export interface PodFacts {
  readonly podIPs: readonly string[];
  readonly hostIPs: readonly string[];
}

/**
 * The value of a downward API `fieldRef`, for environment variables.
 *
 * Source: https://kubernetes.io/docs/concepts/workloads/pods/downward-api/
 *
 * @throws Error `unsupported fieldPath: …`
 */
export function podField(pod: DeepReadonly<Pod>, path: string, facts: PodFacts): string {
  switch (path) {
    case "spec.nodeName":
      return pod.spec?.nodeName ?? "";
    case "spec.serviceAccountName":
      return pod.spec?.serviceAccountName ?? "";
    case "status.hostIP":
      return facts.hostIPs[0] ?? "";
    case "status.hostIPs":
      return facts.hostIPs.join(",");
    case "status.podIP":
      return facts.podIPs[0] ?? "";
    case "status.podIPs":
      return facts.podIPs.join(",");
    default:
      return metadataField(pod, path);
  }
}

/**
 * A field of the metadata, whole or with a subscript (`metadata.labels['app']`): all that volumes offer.
 *
 * @throws Error `unsupported fieldPath: …`
 */
export function metadataField(pod: DeepReadonly<Pod>, path: string): string {
  const subscript = /^([^[]+)\['(.*)'\]$/s.exec(path);
  if (subscript) {
    const [, field, key = ""] = subscript;
    if (field === "metadata.labels") return pod.metadata?.labels?.[key] ?? "";
    if (field === "metadata.annotations") return pod.metadata?.annotations?.[key] ?? "";
    throw new Error(`fieldPath "${path}" does not support subscript`);
  }
  switch (path) {
    case "metadata.name":
      return pod.metadata?.name ?? "";
    case "metadata.namespace":
      return pod.metadata?.namespace ?? "";
    case "metadata.uid":
      return pod.metadata?.uid ?? "";
    case "metadata.labels":
      return formatMap(pod.metadata?.labels ?? {});
    case "metadata.annotations":
      return formatMap(pod.metadata?.annotations ?? {});
    default:
      throw new Error(`unsupported fieldPath: ${path}`);
  }
}

/** `key="value"` lines in key order, values quoted as Go does. */
export function formatMap(map: Readonly<Record<string, string>>): string {
  return Object.keys(map)
    .sort()
    .map((key) => `${key}=${goQuote(map[key] ?? "")}`)
    .join("\n");
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\u0007": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  '"': '\\"',
  "\\": "\\\\",
};

/** A string as a Go literal: printable characters as they are, the others escaped. */
export function goQuote(text: string): string {
  let result = '"';
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    const short = ESCAPES[character];
    if (short) result += short;
    else if (code < 0x20 || code === 0x7f) result += `\\x${code.toString(16).padStart(2, "0")}`;
    else if (character === " " || /[\p{L}\p{M}\p{N}\p{P}\p{S}]/u.test(character)) result += character;
    else if (code < 0x10000) result += `\\u${code.toString(16).padStart(4, "0")}`;
    else result += `\\U${code.toString(16).padStart(8, "0")}`;
  }
  return `${result}"`;
}
