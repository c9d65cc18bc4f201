import { type DeepReadonly, messageOf } from "#base";
import {
  type ApiObject,
  resources,
  type Scheme,
  StatusError,
  type ValidatingAdmissionPolicy,
  type ValidatingAdmissionPolicyBinding,
  type Validation,
} from "#kinds";
import type { AdmissionAttributes, AdmissionPlugin } from "../../ports.ts";
import { allHold, type Compiled, compiled } from "../cel/conditions.ts";
import { type CallValues, compileTyped, valuesOf } from "../cel/environment.ts";
import { type Candidate, createHookIndex } from "../match/hook-index.ts";
import { versionedCall } from "../match/versioned.ts";
import { refuse } from "../support.ts";
import { bindPolicies, type BoundPolicy, nameOf } from "./bound-policies.ts";
import { evaluate, evaluateNamed, type PolicyExpressions, policyExpressions, type Scope } from "./expressions.ts";
import { matchesCall } from "./match.ts";
import { paramKindOf, paramsOf } from "./params.ts";

export interface PolicyDeps extends CallValues {
  readonly scheme: Scheme;
}

interface CompiledPolicy {
  readonly expressions: PolicyExpressions;
  readonly conditions: readonly Compiled[];
  readonly validations: readonly {
    readonly validation: DeepReadonly<Validation>;
    readonly program: Compiled;
    readonly message: Compiled | undefined;
  }[];
}

type Policy = BoundPolicy<ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, CompiledPolicy>;
type Binding = Policy["bindings"][number];

/** A validation that does not hold, or an expression that failed. */
interface Denial {
  readonly message: string;
  readonly reason?: string | undefined;
}

/** @see https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/ */
export function createValidatingPolicies(deps: PolicyDeps): AdmissionPlugin {
  const sources = [resources.validatingAdmissionPolicies, resources.validatingAdmissionPolicyBindings];
  const index = createHookIndex<Policy>(deps, sources as never, () =>
    bindPolicies(
      deps.reader.list(resources.validatingAdmissionPolicies),
      deps.reader.list(resources.validatingAdmissionPolicyBindings),
      compilePolicy,
    ),
  );
  return {
    name: "ValidatingAdmissionPolicy",
    handles: (attributes) => index.of(attributes).length > 0,
    validate(attributes) {
      const denied: StatusError[] = [];
      for (const candidate of index.of(attributes)) judge(candidate, attributes, deps, denied);
      if (denied[0]) throw denied[0];
    },
  };
}

function compilePolicy({ spec = {} }: ValidatingAdmissionPolicy): CompiledPolicy {
  const expressions = policyExpressions(spec);
  const compile = (source: string, type: string) =>
    compiled(() => compileTyped(expressions.env, source.trim(), [type]));
  return {
    expressions,
    conditions: (spec.matchConditions ?? []).map(({ expression }) =>
      compiled(() => compileTyped(expressions.conditionsEnv, expression, ["bool"])),
    ),
    validations: (spec.validations ?? []).map((validation) => ({
      validation,
      program: compile(validation.expression, "bool"),
      message: validation.messageExpression ? compile(validation.messageExpression, "string") : undefined,
    })),
  };
}

function judge(
  { hook, kind }: Candidate<Policy>,
  attributes: AdmissionAttributes,
  deps: PolicyDeps,
  denied: StatusError[],
): void {
  const { policy } = hook;
  const place = { ...attributes, kind };
  const ignores = policy.spec?.failurePolicy === "Ignore";
  /** What keeps a policy from being asked refuses, unless that is to be ignored. */
  const attempt = <T>(what: "policy" | "binding", binding: Binding | undefined, run: () => T): T | undefined => {
    try {
      return run();
    } catch (error) {
      if (!ignores)
        denied.push(
          refusal(attributes, hook, binding, { message: `failed to configure ${what}: ${messageOf(error)}` }),
        );
      return undefined;
    }
  };
  if (!attempt("policy", undefined, () => matchesCall(policy.spec?.matchConstraints, place, attributes, deps.reader)))
    return;
  for (const binding of hook.bindings) {
    const { paramRef, matchResources, validationActions = [] } = binding.spec ?? {};
    if (!attempt("binding", binding, () => matchesCall(matchResources, place, attributes, deps.reader))) continue;
    const { paramKind } = policy.spec ?? {};
    const known = paramKind ? attempt("policy", undefined, () => paramKindOf(paramKind, deps.scheme)) : undefined;
    if (paramKind && !known) continue;
    const params: readonly (ApiObject | undefined)[] | undefined =
      known && paramRef
        ? attempt("binding", binding, () => paramsOf(known, paramRef, attributes.namespace, deps.reader))
        : [undefined];
    for (const param of params ?? []) {
      const view = versionedCall(attributes, kind);
      const scope = hook.compiled.expressions.scope(valuesOf(attributes, kind, view, deps), param);
      for (const denial of denials(hook.compiled, scope, ignores)) {
        if (validationActions.includes("Deny")) denied.push(refusal(attributes, hook, binding, denial));
        if (validationActions.includes("Warn"))
          attributes.warn(
            `Validation failed for ValidatingAdmissionPolicy '${hook.name}' with binding '${nameOf(binding)}': ${denial.message}`,
          );
      }
    }
  }
}

function denials({ conditions, validations }: CompiledPolicy, scope: Scope, ignores: boolean): Denial[] {
  const meant = allHold(conditions, scope.values);
  if (typeof meant === "object") return ignores ? [] : [{ message: meant.error }];
  if (!meant) return [];
  return validations.flatMap(({ validation, program, message }): Denial[] => {
    try {
      if (evaluateNamed(program, scope) === true) return [];
    } catch (error) {
      return ignores ? [] : [{ message: messageOf(error) }];
    }
    const text =
      textOf(message, scope) || validation.message?.trim() || `failed expression: ${validation.expression.trim()}`;
    return [{ message: text, reason: validation.reason }];
  });
}

/** Bytes of a message that an expression makes. */
const MAX_MESSAGE = 5 << 10;

/** What `messageExpression` gives; undefined when that can't be shown. */
function textOf(program: Compiled | undefined, scope: Scope): string | undefined {
  if (!program) return undefined;
  try {
    const text = evaluate(program, scope);
    if (typeof text !== "string") return undefined;
    const trimmed = text.trim();
    return trimmed.includes("\n") || Buffer.byteLength(trimmed) > MAX_MESSAGE ? undefined : trimmed;
  } catch {
    // the fixed message stands in for one that can't be made
    return undefined;
  }
}

const CODES: Readonly<Record<string, number>> = { Unauthorized: 401, Forbidden: 403, RequestEntityTooLarge: 413 };

function refusal(
  attributes: AdmissionAttributes,
  { name }: Policy,
  binding: Binding | undefined,
  { message, reason = "Invalid" }: Denial,
): StatusError {
  const by = binding ? ` with binding '${nameOf(binding)}'` : "";
  const text = `ValidatingAdmissionPolicy '${name}'${by} denied request: ${message}`;
  const { status } = refuse(attributes, text);
  return new StatusError({
    ...status,
    reason,
    code: CODES[reason] ?? 422,
    details: { ...status.details, causes: [{ message: text }] },
  });
}
