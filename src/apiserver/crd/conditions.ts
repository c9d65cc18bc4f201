import { deepEqual } from "#base";
import type {
  CustomResourceDefinition,
  CustomResourceDefinitionCondition,
  CustomResourceDefinitionNames,
} from "#kinds";

type Condition = Omit<CustomResourceDefinitionCondition, "lastTransitionTime">;

export function conditionOf(
  definition: CustomResourceDefinition,
  type: string,
): CustomResourceDefinitionCondition | undefined {
  return definition.status?.conditions?.find((condition) => condition.type === type);
}

export function isTrueCondition(definition: CustomResourceDefinition, type: string): boolean {
  return conditionOf(definition, type)?.status === "True";
}

/** The conditions with one set anew; the time stays while the status does. */
export function withCondition(
  conditions: readonly CustomResourceDefinitionCondition[] | null | undefined,
  condition: Condition,
  now: string,
): CustomResourceDefinitionCondition[] {
  const list = [...(conditions ?? [])];
  const at = list.findIndex(({ type }) => type === condition.type);
  const before = list[at];
  const time = before?.status === condition.status && before.lastTransitionTime ? before.lastTransitionTime : now;
  const made = { ...condition, lastTransitionTime: time };
  if (at < 0) list.push(made);
  else list[at] = made;
  return list;
}

export interface Naming {
  readonly acceptedNames: CustomResourceDefinitionNames;
  readonly namesAccepted: Condition;
  readonly established: Condition;
}

/** Which of a definition's names are free beside the other definitions of its group. */
export function decideNames(definition: CustomResourceDefinition, others: readonly CustomResourceDefinition[]): Naming {
  const { names } = definition.spec;
  const taken = others
    .filter(({ spec }) => spec.group === definition.spec.group)
    .map(({ status }) => status?.acceptedNames);
  const resources = new Set(
    taken.flatMap((one) => [one?.plural, one?.singular, ...(one?.shortNames ?? [])]).filter(Boolean),
  );
  const kinds = new Set(taken.flatMap((one) => [one?.kind, one?.listKind]).filter(Boolean));
  const accepted: CustomResourceDefinitionNames = { ...(definition.status?.acceptedNames ?? { plural: "", kind: "" }) };
  let namesAccepted: Condition | undefined;
  const refuse = (reason: string, message: string) => {
    namesAccepted = { type: "NamesAccepted", status: "False", reason, message };
  };
  const claim = (
    field: "plural" | "singular" | "kind" | "listKind",
    used: ReadonlySet<string | undefined>,
    reason: string,
  ) => {
    const wanted = names[field];
    if (wanted !== accepted[field] && used.has(wanted)) refuse(reason, `${JSON.stringify(wanted)} is already in use`);
    else if (wanted !== undefined) accepted[field] = wanted;
  };
  claim("plural", resources, "PluralConflict");
  claim("singular", resources, "SingularConflict");
  const shortNames = names.shortNames ?? [];
  const clashes = shortNames.filter((name) => !accepted.shortNames?.includes(name) && resources.has(name));
  if (clashes.length > 0) {
    const texts = clashes.map((name) => `${JSON.stringify(name)} is already in use`);
    refuse("ShortNamesConflict", texts.length === 1 ? texts[0]! : `[${texts.join(", ")}]`);
  } else if (shortNames.length > 0) accepted.shortNames = [...shortNames];
  else delete accepted.shortNames;
  claim("kind", kinds, "KindConflict");
  claim("listKind", kinds, "ListKindConflict");
  if (names.categories?.length) accepted.categories = [...names.categories];
  else delete accepted.categories;
  const decided: Condition = namesAccepted ?? {
    type: "NamesAccepted",
    status: "True",
    reason: "NoConflicts",
    message: "no conflicts found",
  };
  return {
    acceptedNames: accepted,
    namesAccepted: decided,
    established: establish(definition, decided.status === "True"),
  };
}

function establish(definition: CustomResourceDefinition, accepted: boolean): Condition {
  const before = conditionOf(definition, "Established");
  if (before?.status === "True") return before;
  if (accepted)
    return {
      type: "Established",
      status: "True",
      reason: "InitialNamesAccepted",
      message: "the initial names have been accepted",
    };
  return { type: "Established", status: "False", reason: "NotAccepted", message: "not all names are accepted" };
}

/** The status with the names decided; undefined when it says so already. */
export function namedStatus(
  definition: CustomResourceDefinition,
  { acceptedNames, namesAccepted, established }: Naming,
  now: string,
): CustomResourceDefinition["status"] | undefined {
  const { status } = definition;
  let conditions = withCondition(status?.conditions, namesAccepted, now);
  conditions = withCondition(conditions, established, now);
  if (deepEqual(status?.acceptedNames, acceptedNames) && deepEqual(status?.conditions, conditions)) return undefined;
  return { ...status, acceptedNames, conditions, storedVersions: status?.storedVersions ?? [] };
}
