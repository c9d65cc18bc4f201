import type { DeepReadonly } from "#base";
import type { ExpressionWarning, KindInfo, Scheme, ValidatingAdmissionPolicy } from "#kinds";
import { CelCompileError, compileCel } from "../../cel/mod.ts";
import { variablesEnvironment } from "./expressions.ts";
import { declareKind } from "./typed-object.ts";

type Spec = DeepReadonly<NonNullable<ValidatingAdmissionPolicy["spec"]>>;

/** Kinds that are looked at for one policy. */
const MAX_KINDS = 10;

/**
 * What would fail in expressions on objects of the kinds that a policy names. Rules with wildcards are not looked at.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/#type-checking
 */
export function typeWarnings(spec: Spec, scheme: Scheme): ExpressionWarning[] {
  const names = (spec.variables ?? []).map(({ name }) => name);
  const environments = kindsOf(spec, scheme).map(
    (kind) =>
      [kind, variablesEnvironment(spec.paramKind !== undefined, names, (env) => declareKind(env, kind))] as const,
  );
  const check = (fieldRef: string, source: string | undefined): ExpressionWarning[] => {
    if (!source) return [];
    const texts = environments.flatMap(([kind, env]) => {
      try {
        compileCel(env, source);
        return [];
      } catch (error) {
        if (!(error instanceof CelCompileError)) throw error;
        const { group, version } = kind;
        return [`${group}/${version}, Kind=${kind.kind}: ${error.message.replace(/^compilation failed: /, "")}\n`];
      }
    });
    return texts.length > 0 ? [{ fieldRef, warning: texts.join("\n") }] : [];
  };
  return (spec.validations ?? []).flatMap(({ expression, messageExpression }, i) => [
    ...check(`spec.validations[${i}].expression`, expression),
    ...check(`spec.validations[${i}].messageExpression`, messageExpression),
  ]);
}

function kindsOf({ matchConstraints }: Spec, scheme: Scheme): KindInfo[] {
  const found = new Set<KindInfo>();
  const open = (texts: readonly string[] | undefined) => texts?.some((text) => text.includes("*")) ?? true;
  for (const rule of matchConstraints?.resourceRules ?? []) {
    if (open(rule.apiGroups) || open(rule.apiVersions)) continue;
    for (const group of rule.apiGroups ?? [])
      for (const version of rule.apiVersions ?? [])
        for (const resource of rule.resources ?? []) {
          const kind = /[*/]/.test(resource) ? undefined : scheme.byResource(group, version, resource);
          if (kind && found.size < MAX_KINDS) found.add(kind);
        }
  }
  const key = ({ group, version, kind }: KindInfo) => `${group}\0${version}\0${kind}`;
  return [...found].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}
