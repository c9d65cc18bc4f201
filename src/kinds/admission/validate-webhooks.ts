import type {
  MutatingWebhook,
  MutatingWebhookConfiguration,
  ValidatingWebhook,
  ValidatingWebhookConfiguration,
} from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, invalidEach, oneOf } from "../validation/field-error.ts";
import { validateLabelSelector } from "../validation/label-selector.ts";
import { isDNS1035Label, isDNS1123Subdomain, isPortNumber, isQualifiedName } from "../validation/names.ts";
import { validateAdmissionRule } from "./validate-rules.ts";

type Webhook = ValidatingWebhook | MutatingWebhook;
const REVIEW_VERSIONS = ["v1", "v1beta1"];
const MAX_TIMEOUT_SECONDS = 30;

/** https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/ */
export function validateWebhooks(
  configuration: ValidatingWebhookConfiguration | MutatingWebhookConfiguration,
): FieldError[] {
  const webhooks: readonly Webhook[] = configuration.webhooks ?? [];
  return eachItem(webhooks, "webhooks", (webhook, at, i) => [
    ...validateWebhook(webhook, at),
    ...validateReviewVersions(webhook.admissionReviewVersions ?? [], `${at}.admissionReviewVersions`),
    ...(webhook.name && webhooks.findIndex(({ name }) => name === webhook.name) < i
      ? [fieldError.duplicate(`${at}.name`, webhook.name)]
      : []),
  ]);
}

function validateWebhook(webhook: Webhook, path: string): FieldError[] {
  const { failurePolicy, matchPolicy, sideEffects, timeoutSeconds: seconds } = webhook;
  const errors = validateFullyQualifiedName(webhook.name, `${path}.name`);
  errors.push(...eachItem(webhook.rules, `${path}.rules`, validateAdmissionRule));
  if (failurePolicy !== undefined) errors.push(...oneOf(`${path}.failurePolicy`, failurePolicy, ["Fail", "Ignore"]));
  if (matchPolicy !== undefined) errors.push(...oneOf(`${path}.matchPolicy`, matchPolicy, ["Equivalent", "Exact"]));
  if (typeof sideEffects === "string") {
    errors.push(...oneOf(`${path}.sideEffects`, sideEffects, ["None", "NoneOnDryRun"]));
  } else errors.push(fieldError.required(`${path}.sideEffects`, "must specify one of None, NoneOnDryRun"));
  if (seconds !== undefined && (seconds < 1 || seconds > MAX_TIMEOUT_SECONDS)) {
    const text = `the timeout value must be between 1 and ${MAX_TIMEOUT_SECONDS} seconds`;
    errors.push(fieldError.invalid(`${path}.timeoutSeconds`, seconds, text));
  }
  errors.push(...validateLabelSelector(webhook.namespaceSelector, `${path}.namespaceSelector`));
  errors.push(...validateLabelSelector(webhook.objectSelector, `${path}.objectSelector`));
  errors.push(...validateClient(webhook.clientConfig ?? {}, `${path}.clientConfig`));
  if ("reinvocationPolicy" in webhook) {
    errors.push(...oneOf(`${path}.reinvocationPolicy`, webhook.reinvocationPolicy, ["IfNeeded", "Never"]));
  }
  return [...errors, ...validateConditions(webhook.matchConditions ?? [], `${path}.matchConditions`)];
}

function validateFullyQualifiedName(name: string | undefined, path: string): FieldError[] {
  if (!name) return [fieldError.required(path)];
  const texts = isDNS1123Subdomain(name);
  if (texts.length > 0 || name.split(".").length >= 3) return invalidEach(path, name, texts);
  return [fieldError.invalid(path, name, "should be a domain with at least three segments separated by dots")];
}

function validateReviewVersions(versions: readonly string[], path: string): FieldError[] {
  const known = REVIEW_VERSIONS.join(", ");
  if (versions.length === 0) return [fieldError.required(path, `must specify one of ${known}`)];
  const errors = eachItem(versions, path, (version, at, i) =>
    versions.indexOf(version) < i
      ? [fieldError.invalid(at, version, "duplicate version")]
      : invalidEach(at, version, isDNS1035Label(version)),
  );
  if (versions.some((version) => REVIEW_VERSIONS.includes(version))) return errors;
  return [...errors, fieldError.invalid(path, versions, `must include at least one of ${known}`)];
}

function validateConditions(conditions: NonNullable<Webhook["matchConditions"]>, path: string): FieldError[] {
  return eachItem(conditions, path, ({ name, expression }, at, i) => {
    const errors = expression?.trim() ? [] : [fieldError.required(`${at}.expression`)];
    if (!name) return [...errors, fieldError.required(`${at}.name`)];
    errors.push(...invalidEach(`${at}.name`, name, isQualifiedName(name)));
    const again = conditions.findIndex((other) => other.name === name) < i;
    return again ? [...errors, fieldError.duplicate(`${at}.name`, name)] : errors;
  });
}

function validateClient({ url, service }: Partial<Webhook["clientConfig"]>, path: string): FieldError[] {
  if ((url === undefined) === (service === undefined)) {
    return [fieldError.required(path, "exactly one of url or service is required")];
  }
  return service ? validateService(service, `${path}.service`) : validateUrl(url ?? "", `${path}.url`);
}

const URL_PARTS = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/(?:([^/?#@]*)@)?([^/?#]*))?[^?#]*(?:\?([^#]*))?(?:#(.*))?$/i;
const FORM = "desired format: https://host[/path]";

function validateUrl(url: string, path: string): FieldError[] {
  const [, scheme = "", user = "", host = "", query = "", fragment = ""] = URL_PARTS.exec(url) ?? [];
  const errors: FieldError[] = [];
  const bad = (part: string, text: string) => errors.push(fieldError.invalid(path, part, text));
  if (scheme !== "https") bad(scheme, `'https' is the only allowed URL scheme; ${FORM}`);
  if (!host) bad("", `host must be specified; ${FORM}`);
  if (user) bad(user, "user information is not permitted in the URL");
  if (fragment) bad(fragment, "fragments are not permitted in the URL");
  if (query) bad(query, "query parameters are not permitted in the URL");
  return errors;
}

type ServiceReference = NonNullable<Webhook["clientConfig"]["service"]>;

function validateService({ name, namespace, path: urlPath = "", port }: ServiceReference, path: string): FieldError[] {
  const errors: FieldError[] = [];
  // the API server mixes up the two fields in its message
  if (!namespace) errors.push(fieldError.required(`${path}.name`));
  if (!name) errors.push(fieldError.required(`${path}.namespace`));
  if (port !== undefined) {
    errors.push(
      ...invalidEach(
        `${path}.port`,
        port,
        isPortNumber(port).map((text) => `port is not valid: ${text}`),
      ),
    );
  }
  if (urlPath === "" || urlPath === "/") return errors;
  const bad = (text: string) => errors.push(fieldError.invalid(`${path}.path`, urlPath, text));
  if (!urlPath.startsWith("/")) bad("must start with a '/'");
  // its first character is taken for the slash, also where it isn't
  for (const [i, segment] of urlPath.replace(/\/$/, "").slice(1).split("/").entries()) {
    if (segment === "") bad(`segment[${i}] may not be empty`);
    else for (const text of isDNS1123Subdomain(segment)) bad(`segment[${i}]: ${text}`);
  }
  return errors;
}
