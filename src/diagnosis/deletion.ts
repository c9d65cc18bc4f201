import { type About, aboutOf, type Cause, conditionLine, listed, type ReadonlyObject } from "./evidence.ts";

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

/** An object that is being deleted and held by finalizers. */
export function finalizerCause(object: ReadonlyObject, about: About = aboutOf(object)): Cause | undefined {
  const { deletionTimestamp, finalizers = [] } = object.metadata;
  if (!deletionTimestamp || finalizers.length === 0) return undefined;
  const names = listed(finalizers.map((one) => `"${one}"`));
  return {
    code: "finalizer",
    sentence: `${about.kind} "${about.name}" was deleted, but its finalizer${finalizers.length > 1 ? "s" : ""} ${names} ${finalizers.length > 1 ? "are" : "is"} still there: whoever put it has not finished`,
    evidence: [`metadata.deletionTimestamp is ${deletionTimestamp}`, `metadata.finalizers: ${finalizers.join(", ")}`],
    about,
    mends: "maybe",
  };
}

/** A namespace that does not go away says in its conditions what is left in it. */
export function namespaceCause(namespace: ReadonlyObject): Cause | undefined {
  const { deletionTimestamp } = namespace.metadata;
  if (!deletionTimestamp) return undefined;
  const { conditions = [] } = (namespace.status ?? {}) as { conditions?: readonly Condition[] };
  const about = aboutOf(namespace);
  const order = [
    "NamespaceFinalizersRemaining",
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceContentRemaining",
  ];
  const telling = order.flatMap((type) => conditions.find((one) => one.type === type && one.status === "True") ?? []);
  const [first] = telling;
  return {
    code: "finalizer",
    sentence: first
      ? `the namespace "${about.name}" can't be removed yet: ${first.message}`
      : `the namespace "${about.name}" is being deleted`,
    evidence: [`metadata.deletionTimestamp is ${deletionTimestamp}`, ...telling.map(conditionLine)],
    about,
    mends: "maybe",
  };
}
