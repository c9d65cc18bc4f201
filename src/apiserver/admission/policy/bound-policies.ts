import type { DeepReadonly } from "#base";
import type { MatchResources, ParamKind, ParamRef } from "#kinds";
import type { Matchable } from "../match/hook-index.ts";
import { coversPlace } from "./match.ts";

interface Named {
  readonly metadata: { readonly name?: string };
}

interface PolicyLike extends Named {
  readonly spec?: {
    readonly matchConstraints?: MatchResources;
    readonly paramKind?: ParamKind;
    readonly failurePolicy?: string;
  };
}

interface BindingLike extends Named {
  readonly spec?: {
    readonly policyName?: string;
    readonly paramRef?: ParamRef;
    readonly matchResources?: MatchResources;
  };
}

/** A policy with what binds it. */
export interface BoundPolicy<P, B, E> extends Matchable {
  readonly name: string;
  readonly policy: DeepReadonly<P>;
  readonly bindings: readonly DeepReadonly<B>[];
  readonly compiled: E;
}

/** By name; policies that nothing binds do nothing and are left out. */
export function bindPolicies<P extends PolicyLike, B extends BindingLike, E>(
  policies: readonly P[],
  bindings: readonly B[],
  compile: (policy: P) => E,
): BoundPolicy<P, B, E>[] {
  const byName = <T extends Named>(all: readonly T[]) => [...all].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  return byName(policies).flatMap((policy) => {
    const name = nameOf(policy);
    const own = byName(bindings).filter(({ spec }) => spec?.policyName === name);
    if (own.length === 0) return [];
    const constraints = policy.spec?.matchConstraints ?? {};
    return [
      {
        name,
        policy: policy as DeepReadonly<P>,
        bindings: own as unknown as readonly DeepReadonly<B>[],
        compiled: compile(policy),
        equivalent: constraints.matchPolicy !== "Exact",
        covers: (place) => coversPlace(constraints, place),
      },
    ];
  });
}

export const nameOf = ({ metadata }: DeepReadonly<Named>): string => metadata.name ?? "";
