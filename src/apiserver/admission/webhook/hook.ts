import type { DeepReadonly } from "#base";
import type { KindInfo, MutatingWebhook, ValidatingWebhook } from "#kinds";
import { createConditions, type Conditions, type ConditionsDeps } from "../cel/conditions.ts";
import type { Matchable } from "../match/hook-index.ts";
import { ruleMatches } from "../match/rules.ts";

export type WebhookSpec = DeepReadonly<ValidatingWebhook & Pick<MutatingWebhook, "reinvocationPolicy">>;

/** A webhook of a configuration, ready to be asked. */
export interface Hook extends Matchable {
  /** Of all webhooks of a phase. */
  readonly id: string;
  readonly spec: WebhookSpec;
  readonly conditions: Conditions | undefined;
}

interface Configuration {
  readonly metadata?: { readonly name?: string };
  readonly webhooks?: readonly WebhookSpec[];
}

/** Hooks in the order in which they are called: configurations by name, each in its own order. */
export function hooksOf(configurations: readonly DeepReadonly<Configuration>[], deps: ConditionsDeps): Hook[] {
  const nameOf = ({ metadata }: DeepReadonly<Configuration>) => metadata?.name ?? "";
  return [...configurations]
    .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
    .flatMap((configuration) =>
      (configuration.webhooks ?? []).map((spec, i) => hookOf(`${nameOf(configuration)}/${spec.name}/${i}`, spec, deps)),
    );
}

function hookOf(id: string, spec: WebhookSpec, deps: ConditionsDeps): Hook {
  const conditions = spec.matchConditions?.length
    ? createConditions(deps, spec.matchConditions, spec.failurePolicy)
    : undefined;
  return {
    id,
    spec,
    conditions,
    equivalent: spec.matchPolicy !== "Exact",
    covers: (place: { kind: KindInfo; subresource: string; operation: never }) =>
      spec.rules?.some((rule) => ruleMatches(rule, place)) ?? false,
  };
}
