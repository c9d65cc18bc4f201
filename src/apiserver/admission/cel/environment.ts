import type { Environment } from "@marcbachmann/cel-js";
import type { ApiObject, KindInfo } from "#kinds";
import { resources } from "#kinds";
import { type CelProgram, compileCel, createCelEnvironment, toCel } from "../../cel/mod.ts";
import { functions, namespace } from "../../cel/libraries/register.ts";
import type { AdmissionAttributes, Authorizer, Reader } from "../../ports.ts";
import type { VersionedCall } from "../match/versioned.ts";
import { admissionRequest } from "../webhook/review.ts";
import { CelAuthorizer, registerAuthorizer } from "./authorizer-library.ts";

const KIND = { group: "string", version: "string", kind: "string" };
const RESOURCE = { group: "string", version: "string", resource: "string" };
const REQUEST = {
  kind: KIND,
  resource: RESOURCE,
  subResource: "string",
  requestKind: KIND,
  requestResource: RESOURCE,
  requestSubResource: "string",
  name: "string",
  namespace: "string",
  operation: "string",
  userInfo: { username: "string", uid: "string", groups: "list<string>", extra: "map<string, list<string>>" },
  dryRun: "bool",
  options: "dyn",
};

export interface AdmissionEnvironmentOptions {
  readonly params?: boolean;
  readonly authorizer?: boolean;
  /** Declares the type of `object` and `oldObject` and gives its name; without it they may be anything. */
  readonly objectType?: (env: Environment) => string;
}

const JSON_PATCH = "kubernetes.JSONPatchFunctions";
let base: Environment | undefined;

/** What expressions of webhooks and policies may speak of. */
export function admissionEnvironment(options: AdmissionEnvironmentOptions): Environment {
  if (!base) {
    base = createCelEnvironment({ namespaceObject: "dyn" });
    base.registerVariable({ name: "request", schema: REQUEST } as never);
    registerAuthorizer(base);
    namespace(base, "jsonpatch", JSON_PATCH);
    functions(base, {
      [`${JSON_PATCH}.escapeKey(string): string`]: (_: unknown, key: string) =>
        key.replaceAll("~", "~0").replaceAll("/", "~1"),
    });
  }
  const env = base.clone();
  if (options.params) env.registerVariable("params", "dyn");
  const type = options.objectType?.(env) ?? "dyn";
  env.registerVariable("object", type).registerVariable("oldObject", type);
  if (options.authorizer !== false) env.registerVariable("authorizer", "kubernetes.authorization.Authorizer");
  return env;
}

/** A compiled expression that gives one of some types; without any, whatever it likes. @throws CelCompileError, ResultTypeError */
export function compileTyped(env: Environment, source: string, types: readonly string[]): CelProgram {
  const program = compileCel(env, source);
  // what a variable gives is known only when it is computed
  const open = program.type === "dyn" && source.includes("variables.");
  if (open || types.includes(program.type) || types.length === 0) return program;
  const wanted = types.length === 1 ? `must evaluate to ${types[0]}` : `must evaluate to one of [${types.join(" ")}]`;
  throw new ResultTypeError(`${wanted} but got ${typeText(program.type)}`);
}

/** `list(dyn)`, `map(string, int)` */
const typeText = (type: string): string =>
  type === "list" ? "list(dyn)" : type === "map" ? "map(dyn, dyn)" : type.replaceAll("<", "(").replaceAll(">", ")");

/** An expression that gives what nobody asked for. */
export class ResultTypeError extends Error {
  override readonly name = "ResultTypeError";
}

export interface CallValues {
  readonly reader: Reader;
  readonly authorizer: Authorizer;
}

/** The values of a call, each made when it is first read. */
export function valuesOf(
  attributes: AdmissionAttributes,
  seen: KindInfo,
  view: VersionedCall,
  { reader, authorizer }: CallValues,
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  lazily(values, "object", () => toCel(view.object ?? null));
  lazily(values, "oldObject", () => toCel(view.old ?? null));
  lazily(values, "request", () => requestValue(attributes, seen, view));
  lazily(values, "namespaceObject", () => toCel(namespaceOf(attributes, reader) ?? null));
  lazily(values, "authorizer", () => new CelAuthorizer(authorizer, attributes.user, askedBy(attributes)));
  return values;
}

/** A property that is computed once, when it is first read. */
export function lazily(target: Record<string, unknown>, name: string, compute: () => unknown): void {
  Object.defineProperty(target, name, {
    enumerable: true,
    configurable: true,
    get() {
      const value = compute();
      Object.defineProperty(target, name, { value, enumerable: true });
      return value;
    },
  });
}

function requestValue(attributes: AdmissionAttributes, seen: KindInfo, view: VersionedCall): unknown {
  const {
    options,
    object: _object,
    oldObject: _old,
    uid: _uid,
    ...rest
  } = admissionRequest(attributes, seen, "", view);
  return { name: "", ...rest, options: toCel(options) };
}

function namespaceOf({ kind, namespace }: AdmissionAttributes, reader: Reader): ApiObject | undefined {
  if (!namespace || (kind.group === "" && kind.resource === "namespaces")) return undefined;
  return reader.get<unknown>(resources.namespaces as never, undefined, namespace) as ApiObject | undefined;
}

const askedBy = ({ kind, subresource, namespace, name }: AdmissionAttributes) => ({
  group: kind.group,
  resource: kind.resource,
  subresource,
  namespace,
  name,
});
