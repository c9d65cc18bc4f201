import { type CustomResourceConversion, type FieldError, fieldError, isDNS1035Label } from "#kinds";

const PATH = "spec.conversion";

/** Strategy and webhook of the conversion between versions. */
export function validateConversion(
  conversion: CustomResourceConversion | undefined,
  preserving: boolean,
): FieldError[] {
  if (!conversion) return [];
  const { strategy, webhook } = conversion;
  if (!strategy) return [fieldError.required(`${PATH}.strategy`)];
  const errors: FieldError[] = [];
  if (strategy !== "None" && preserving)
    errors.push(fieldError.invalid(`${PATH}.strategy`, strategy, "must be None if spec.preserveUnknownFields is true"));
  if (strategy !== "None" && strategy !== "Webhook")
    errors.push(fieldError.notSupported(`${PATH}.strategy`, strategy, ["None", "Webhook"]));
  if (strategy === "Webhook") return [...errors, ...validateWebhook(webhook)];
  if (webhook?.clientConfig)
    errors.push(
      fieldError.forbidden(`${PATH}.webhookClientConfig`, "should not be set when strategy is not set to Webhook"),
    );
  if (webhook?.conversionReviewVersions?.length)
    errors.push(
      fieldError.forbidden(`${PATH}.conversionReviewVersions`, "should not be set when strategy is not set to Webhook"),
    );
  return errors;
}

function validateWebhook(webhook: CustomResourceConversion["webhook"]): FieldError[] {
  const at = `${PATH}.webhookClientConfig`;
  const errors: FieldError[] = [];
  const config = webhook?.clientConfig;
  if (!config) errors.push(fieldError.required(at, "required when strategy is set to Webhook"));
  else if ((config.url === undefined) === (config.service === undefined))
    errors.push(fieldError.required(at, "exactly one of url or service is required"));
  else if (config.url !== undefined) errors.push(...validateUrl(config.url, `${at}.url`));
  else if (config.service) {
    const { name, namespace, port } = config.service;
    if (!name) errors.push(fieldError.required(`${at}.service.name`, "service name is required"));
    if (!namespace) errors.push(fieldError.required(`${at}.service.namespace`, "service namespace is required"));
    if (port !== undefined && (port < 1 || port > 65535))
      errors.push(
        fieldError.invalid(`${at}.service.port`, port, "port is not valid: must be between 1 and 65535, inclusive"),
      );
  }
  return [...errors, ...validateReviewVersions(webhook?.conversionReviewVersions ?? [])];
}

function validateUrl(text: string, path: string): FieldError[] {
  const form = "; desired format: https://host[/path]";
  const url = URL.parse(text);
  if (!url) return [fieldError.required(path, `url must be a valid URL: ${text}${form}`)];
  if (url.protocol !== "https:")
    return [fieldError.invalid(path, url.protocol.slice(0, -1), `'https' is the only allowed URL scheme${form}`)];
  if (url.host === "") return [fieldError.invalid(path, url.host, `host must be specified${form}`)];
  return [];
}

function validateReviewVersions(versions: readonly string[]): FieldError[] {
  const at = `${PATH}.conversionReviewVersions`;
  if (versions.length === 0) return [fieldError.required(at)];
  const errors: FieldError[] = [];
  for (const [i, version] of versions.entries()) {
    if (versions.indexOf(version) < i) errors.push(fieldError.invalid(`${at}[${i}]`, version, "duplicate version"));
    else for (const text of isDNS1035Label(version)) errors.push(fieldError.invalid(`${at}[${i}]`, version, text));
  }
  if (!versions.includes("v1") && !versions.includes("v1beta1"))
    errors.push(fieldError.invalid(at, versions, "must include at least one of v1, v1beta1"));
  return errors;
}
