import type { Environment } from "@marcbachmann/cel-js";
import { messageOf } from "#base";
import { type FieldError, invalid } from "#kinds";
import type { AdmissionPlugin } from "../../ports.ts";
import { admissionEnvironment, compileTyped } from "../cel/environment.ts";
import { policyExpressions, variablesEnvironment } from "./expressions.ts";
import { objectLiterals } from "./object-literals.ts";

const GROUP = "admissionregistration.k8s.io";

interface Condition {
  readonly name: string;
  readonly expression: string;
}

interface Spec {
  readonly paramKind?: unknown;
  readonly variables?: readonly Condition[];
  readonly matchConditions?: readonly Condition[];
  readonly validations?: readonly { readonly expression: string; readonly messageExpression?: string }[];
  readonly mutations?: readonly {
    readonly applyConfiguration?: { readonly expression: string };
    readonly jsonPatch?: { readonly expression: string };
  }[];
  readonly auditAnnotations?: readonly { readonly valueExpression: string }[];
}

/** Expressions of webhooks and policies compile before they are kept. */
export function createExpressionChecks(): AdmissionPlugin {
  return {
    name: "AdmissionExpressions",
    handles: ({ kind, operation, subresource }) =>
      kind.group === GROUP && (operation === "CREATE" || operation === "UPDATE") && subresource === "",
    validate({ kind, object }) {
      const { spec, webhooks } = object as unknown as { spec?: Spec; webhooks?: { matchConditions?: Condition[] }[] };
      const errors = [
        ...(webhooks ?? []).flatMap((webhook, i) =>
          conditionErrors(`webhooks[${i}]`, webhook.matchConditions, admissionEnvironment({})),
        ),
        ...(spec && kind.kind.endsWith("Policy") ? policyErrors(spec) : []),
      ];
      if (errors.length > 0) throw invalid(kind, object!.metadata.name, errors);
    },
  };
}

function conditionErrors(at: string, conditions: readonly Condition[] | undefined, env: Environment): FieldError[] {
  return (conditions ?? []).flatMap(({ expression }, i) =>
    expressionErrors(`${at}.matchConditions[${i}].expression`, expression, env, ["bool"]),
  );
}

function policyErrors(spec: Spec): FieldError[] {
  const { env, conditionsEnv } = policyExpressions(spec as never);
  const names: string[] = [];
  const params = spec.paramKind !== undefined;
  return [
    ...(spec.variables ?? []).flatMap(({ name, expression }, i) => {
      const errors = expressionErrors(
        `spec.variables[${i}].expression`,
        expression,
        variablesEnvironment(params, names),
        [],
      );
      names.push(name);
      return errors;
    }),
    ...conditionErrors("spec", spec.matchConditions, conditionsEnv),
    ...(spec.validations ?? []).flatMap(({ expression, messageExpression }, i) => [
      ...expressionErrors(`spec.validations[${i}].expression`, expression, env, ["bool"]),
      ...expressionErrors(`spec.validations[${i}].messageExpression`, messageExpression, env, ["string"]),
    ]),
    ...(spec.mutations ?? []).flatMap(({ applyConfiguration, jsonPatch }, i) =>
      [
        expressionErrors(`spec.mutations[${i}].applyConfiguration.expression`, applyConfiguration?.expression, env, []),
        expressionErrors(`spec.mutations[${i}].jsonPatch.expression`, jsonPatch?.expression, env, []),
      ].flat(),
    ),
    ...(spec.auditAnnotations ?? []).flatMap(({ valueExpression }, i) =>
      expressionErrors(`spec.auditAnnotations[${i}].valueExpression`, valueExpression, env, ["string", "null_type"]),
    ),
  ];
}

function expressionErrors(
  field: string,
  source: string | undefined,
  env: Environment,
  types: readonly string[],
): FieldError[] {
  if (!source?.trim()) return [];
  try {
    compileTyped(env, objectLiterals(source.trim()), types);
    return [];
  } catch (error) {
    const message = `Invalid value: ${JSON.stringify(source)}: ${messageOf(error)}`;
    return [{ field, reason: "FieldValueInvalid", message }];
  }
}
