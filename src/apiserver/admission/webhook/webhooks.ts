import { isDeepStrictEqual } from "node:util";
import { type Logger, messageOf, type Random } from "#base";
import { type ApiObject, badRequest, internalError, resources, type Scheme, StatusError, type Status } from "#kinds";
import { applyJsonPatch } from "../../patch/json-patch.ts";
import type { AdmissionAttributes, AdmissionPlugin, Reader } from "../../ports.ts";
import type { ConditionsDeps } from "../cel/conditions.ts";
import { type Candidate, createHookIndex } from "../match/hook-index.ts";
import { replaceObject } from "../match/replace-object.ts";
import { selectorsMatch } from "../match/selectors.ts";
import { versionedCall } from "../match/versioned.ts";
import { type Hook, hooksOf } from "./hook.ts";
import type { PostReview } from "./post.ts";
import { admissionReview, CallError, type Verdict, verdictOf } from "./review.ts";

export interface WebhookDeps extends ConditionsDeps {
  readonly reader: Reader;
  readonly scheme: Scheme;
  readonly random: Random;
  readonly logger: Logger;
  readonly post: PostReview;
}

/**
 * Webhooks that may change what is written, one after the other.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
 */
export function createMutatingWebhooks(deps: WebhookDeps): AdmissionPlugin {
  const name = "MutatingAdmissionWebhook";
  const index = createHookIndex(deps, [resources.mutatingWebhookConfigurations as never], () =>
    hooksOf(deps.reader.list(resources.mutatingWebhookConfigurations) as never, deps),
  );
  return {
    name,
    handles: (attributes) => index.of(attributes).length > 0,
    async admit(attributes) {
      const round = attributes.reinvocation.of(name);
      round.begin(attributes.object);
      for (const candidate of index.of(attributes)) {
        const { hook } = candidate;
        if (!isMeant(candidate, attributes, deps) || !round.isDue(hook.id)) continue;
        const verdict = await ask(candidate, attributes, deps, true);
        const changed = verdict?.patch ? applyPatch(candidate, attributes, verdict.patch) : false;
        round.called(hook.id, { changed, reinvocable: hook.spec.reinvocationPolicy === "IfNeeded" });
      }
      round.end(attributes.object);
    },
  };
}

/** Webhooks that may refuse, all at once; the first refusal is told. */
export function createValidatingWebhooks(deps: WebhookDeps): AdmissionPlugin {
  const index = createHookIndex(deps, [resources.validatingWebhookConfigurations as never], () =>
    hooksOf(deps.reader.list(resources.validatingWebhookConfigurations) as never, deps),
  );
  return {
    name: "ValidatingAdmissionWebhook",
    handles: (attributes) => index.of(attributes).length > 0,
    async validate(attributes) {
      const meant = index.of(attributes).filter((candidate) => isMeant(candidate, attributes, deps));
      const answers = await Promise.allSettled(meant.map((candidate) => ask(candidate, attributes, deps, false)));
      for (const answer of answers) if (answer.status === "rejected") throw answer.reason;
    },
  };
}

/** Selectors and match conditions. @throws StatusError when they can't be told */
function isMeant({ hook, kind }: Candidate<Hook>, attributes: AdmissionAttributes, { reader }: WebhookDeps): boolean {
  return (
    selectorsMatch(hook.spec, attributes, reader) &&
    (hook.conditions?.match(attributes, kind, versionedCall(attributes, kind)) ?? true)
  );
}

/** Undefined: it could not be asked, and that does not matter (`failurePolicy: Ignore`). @throws StatusError */
async function ask(
  { hook, kind }: Candidate<Hook>,
  attributes: AdmissionAttributes,
  deps: WebhookDeps,
  mutating: boolean,
): Promise<Verdict | undefined> {
  const { spec } = hook;
  if (attributes.dryRun && spec.sideEffects !== "None" && spec.sideEffects !== "NoneOnDryRun")
    throw badRequest(`admission webhook ${JSON.stringify(spec.name)} does not support dry run`);
  let verdict: Verdict;
  try {
    verdict = await verdictFrom(hook, attributes, kind, deps, mutating);
  } catch (error) {
    const message = `failed calling webhook ${JSON.stringify(spec.name)}: ${messageOf(error)}`;
    if (spec.failurePolicy !== "Ignore") throw internalError(new Error(message, { cause: error }));
    deps.logger.warn("a webhook could not be asked and is ignored", { webhook: spec.name, error: message });
    return undefined;
  }
  for (const text of verdict.warnings) attributes.warn(text);
  if (!verdict.allowed) throw rejection(spec.name, verdict.status);
  return verdict;
}

async function verdictFrom(
  { spec }: Hook,
  attributes: AdmissionAttributes,
  kind: Candidate<Hook>["kind"],
  { post, random }: WebhookDeps,
  mutating: boolean,
): Promise<Verdict> {
  const review = admissionReview(attributes, kind, spec.admissionReviewVersions, random);
  const answer = await post(spec.clientConfig, review.body, spec.timeoutSeconds ?? 10).catch((error) => {
    throw new Error(`failed to call webhook: ${messageOf(error)}`, { cause: error });
  });
  try {
    const verdict = verdictOf(answer, review, mutating);
    if (verdict.patch && verdict.allowed) JSON.parse(verdict.patch);
    return verdict;
  } catch (error) {
    throw new Error(answerText(error), { cause: error });
  }
}

function answerText(error: unknown): string {
  if (error instanceof SyntaxError) {
    const [, found] = /Unexpected token '(.)'/.exec(error.message) ?? [];
    const why = found ? `invalid character '${found}' looking for beginning of value` : "unexpected end of JSON input";
    return `received undecodable patch in webhook response: ${why}`;
  }
  const what = error instanceof CallError ? "failed to call webhook" : "received invalid webhook response";
  return `${what}: ${messageOf(error)}`;
}

/** A webhook's own status, which never is a success. */
function rejection(webhook: string, own: Status | undefined): StatusError {
  const denied = `admission webhook ${JSON.stringify(webhook)} denied the request`;
  const why = own?.message || own?.reason;
  return new StatusError({
    ...own,
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: why ? `${denied}: ${why}` : `${denied} without explanation`,
    code: (own?.code ?? 0) < 400 ? 400 : own!.code!,
  });
}

/** True when the patch has changed the object. @throws StatusError 500 for a patch that does not fit */
function applyPatch({ hook, kind }: Candidate<Hook>, attributes: AdmissionAttributes, patch: string): boolean {
  const operations = JSON.parse(patch) as unknown[];
  if (Array.isArray(operations) && operations.length === 0) return false;
  const { object } = versionedCall(attributes, kind);
  if (!object || attributes.operation === "CONNECT")
    throw internalError(
      new Error(
        `admission webhook ${JSON.stringify(hook.spec.name)} attempted to modify the object, which is not supported for this operation`,
      ),
    );
  let patched: ApiObject;
  try {
    patched = applyJsonPatch(structuredClone(object), operations);
  } catch (error) {
    throw internalError(new Error(patchText(messageOf(error))));
  }
  return isDeepStrictEqual(patched, object) ? false : replaceObject(attributes, patched, kind);
}

/** Why a patch does not fit, as it is told where no client sent it. */
export function patchText(message: string): string {
  const text = message.replace("the server rejected our request due to an error in our request: ", "");
  return text.replace(
    /^remove operation does not apply: doc is missing path: "(.*?([^/]*))": missing value$/,
    "error in remove for path: '$1': Unable to remove nonexistent key: $2: missing value",
  );
}
