import { type DeepReadonly, deepEqual, messageOf } from "#base";
import {
  type ApiObject,
  type MutatingAdmissionPolicy,
  type MutatingAdmissionPolicyBinding,
  type Mutation,
  resources,
  StatusError,
} from "#kinds";
import { fromCel } from "../../cel/mod.ts";
import { applyJsonPatch } from "../../patch/json-patch.ts";
import { mergePatch } from "../../patch/merge-patch.ts";
import { strategicMergePatch } from "../../patch/strategic-merge-patch.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../../ports.ts";
import { allHold, type Compiled, compiled } from "../cel/conditions.ts";
import { compileTyped, valuesOf } from "../cel/environment.ts";
import { type Candidate, createHookIndex } from "../match/hook-index.ts";
import { replaceObject } from "../match/replace-object.ts";
import { versionedCall } from "../match/versioned.ts";
import { refuse } from "../support.ts";
import { patchText } from "../webhook/webhooks.ts";
import { bindPolicies, type BoundPolicy, nameOf } from "./bound-policies.ts";
import { evaluateNamed, type PolicyExpressions, policyExpressions, type Scope } from "./expressions.ts";
import { matchesCall } from "./match.ts";
import { objectLiterals } from "./object-literals.ts";
import { paramKindOf, paramsOf } from "./params.ts";
import type { PolicyDeps } from "./validating-policies.ts";

interface CompiledPolicy {
  readonly expressions: PolicyExpressions;
  readonly conditions: readonly Compiled[];
  readonly mutations: readonly { readonly mutation: DeepReadonly<Mutation>; readonly program: Compiled }[];
}

type Policy = BoundPolicy<MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, CompiledPolicy>;
type Binding = Policy["bindings"][number];

/** @see https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/ */
export function createMutatingPolicies(deps: PolicyDeps): AdmissionPlugin {
  const name = "MutatingAdmissionPolicy";
  const sources = [resources.mutatingAdmissionPolicies, resources.mutatingAdmissionPolicyBindings];
  const index = createHookIndex<Policy>(deps, sources as never, () =>
    bindPolicies(
      deps.reader.list(resources.mutatingAdmissionPolicies),
      deps.reader.list(resources.mutatingAdmissionPolicyBindings),
      compilePolicy,
    ),
  );
  return {
    name,
    handles: (attributes) => index.of(attributes).length > 0,
    admit(attributes) {
      const round = attributes.reinvocation.of(name);
      round.begin(attributes.object);
      for (const candidate of index.of(attributes)) run(candidate, attributes, deps, round);
      round.end(attributes.object);
    },
  };
}

function compilePolicy({ spec = {} }: MutatingAdmissionPolicy): CompiledPolicy {
  const expressions = policyExpressions(spec);
  return {
    expressions,
    conditions: (spec.matchConditions ?? []).map(({ expression }) =>
      compiled(() => compileTyped(expressions.conditionsEnv, expression, ["bool"])),
    ),
    mutations: (spec.mutations ?? []).map((mutation) => ({
      mutation,
      program: compiled(() => compileTyped(expressions.env, objectLiterals(sourceOf(mutation)), [])),
    })),
  };
}

const sourceOf = ({ applyConfiguration, jsonPatch }: Mutation): string =>
  applyConfiguration?.expression ?? jsonPatch?.expression ?? "";

function run(
  { hook, kind }: Candidate<Policy>,
  attributes: AdmissionAttributes,
  deps: PolicyDeps,
  round: ReturnType<AdmissionAttributes["reinvocation"]["of"]>,
): void {
  const { spec = {} } = hook.policy;
  const place = { ...attributes, kind };
  for (const binding of hook.bindings) {
    const { paramRef, matchResources } = binding.spec ?? {};
    const id = `${hook.name}/${nameOf(binding)}`;
    try {
      if (!matchesCall(spec.matchConstraints, place, attributes, deps.reader)) return;
      if (!matchesCall(matchResources, place, attributes, deps.reader) || !round.isDue(id)) continue;
      const params: readonly (ApiObject | undefined)[] =
        spec.paramKind && paramRef
          ? paramsOf(paramKindOf(spec.paramKind, deps.scheme), paramRef, attributes.namespace, deps.reader)
          : [undefined];
      for (const param of params) {
        const before = attributes.object;
        mutate({ hook, kind }, attributes, deps, param);
        const changed = !deepEqual(before, attributes.object);
        round.called(id, { changed, reinvocable: spec.reinvocationPolicy === "IfNeeded" });
      }
    } catch (error) {
      if (spec.failurePolicy !== "Ignore") throw refusal(attributes, hook, binding, messageOf(error));
    }
  }
}

function mutate(
  { hook, kind }: Candidate<Policy>,
  attributes: AdmissionAttributes,
  deps: PolicyDeps,
  param: ApiObject | undefined,
): void {
  const { expressions, conditions, mutations } = hook.compiled;
  const scopeNow = () => expressions.scope(valuesOf(attributes, kind, versionedCall(attributes, kind), deps), param);
  const meant = allHold(conditions, scopeNow().values);
  if (typeof meant === "object") throw new Error(meant.error);
  if (!meant) return;
  for (const { mutation, program } of mutations) {
    const { object } = versionedCall(attributes, kind);
    if (!object) return;
    const patched = patch(structuredClone(object), mutation, program, { scope: scopeNow(), kind });
    if (patched) replaceObject(attributes, patched, kind);
  }
}

/** Undefined: a `test` of the patch did not hold, and nothing is to be done. */
function patch(
  object: ApiObject,
  mutation: DeepReadonly<Mutation>,
  program: Compiled,
  { scope, kind }: { scope: Scope; kind: Candidate<Policy>["kind"] },
): ApiObject | undefined {
  const value = fromCel(evaluateNamed(program, scope));
  if (mutation.applyConfiguration) {
    const config = value as Record<string, unknown>;
    return (kind.decode ? mergePatch(object, config) : strategicMergePatch(object, config, kind.schema)) as ApiObject;
  }
  try {
    return applyJsonPatch(object, value);
  } catch (error) {
    const text = patchText(messageOf(error));
    if (text.startsWith("testing value")) return undefined;
    throw new Error(`JSON Patch: ${text}`, { cause: error });
  }
}

function refusal(attributes: AdmissionAttributes, { name }: Policy, binding: Binding, why: string): StatusError {
  const message = `policy '${name}' with binding '${nameOf(binding)}' denied request: ${why}`;
  const { status } = refuse(attributes, message);
  return new StatusError({
    ...status,
    message,
    reason: "Invalid",
    details: { ...status.details, causes: [{ message }] },
  });
}
