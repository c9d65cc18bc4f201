/**
 * Checks of names. Each gives the texts of what is wrong, in Kubernetes' words, none for a valid value.
 * Rules: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
 */

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const UNDERSCORE_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const UNDERSCORE_SUBDOMAIN = `${UNDERSCORE_LABEL}(\\.${UNDERSCORE_LABEL})*`;
const LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?";
const WILDCARD = `\\*\\.${SUBDOMAIN}`;
const LABEL_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE = `(${LABEL_KEY})?`;
const CONFIG_KEY = "[-._a-zA-Z0-9]+";
const ENV_NAME = "[-._a-zA-Z][-._a-zA-Z0-9]*";
const HEADER_NAME = "[-A-Za-z0-9]+";
const PERCENT = "[0-9]+%";
const C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*";

const whole = (source: string): RegExp => new RegExp(`^(?:${source})$`);
const LABEL_RE = whole(LABEL);
const SUBDOMAIN_RE = whole(SUBDOMAIN);
const UNDERSCORE_SUBDOMAIN_RE = whole(UNDERSCORE_SUBDOMAIN);
const LABEL_1035_RE = whole(LABEL_1035);
const WILDCARD_RE = whole(WILDCARD);
const LABEL_KEY_RE = whole(LABEL_KEY);
const LABEL_VALUE_RE = whole(LABEL_VALUE);
const CONFIG_KEY_RE = whole(CONFIG_KEY);
const ENV_NAME_RE = whole(ENV_NAME);
const HEADER_NAME_RE = whole(HEADER_NAME);
const PERCENT_RE = whole(PERCENT);
const C_IDENTIFIER_RE = whole(C_IDENTIFIER);

const bytes = (value: string): number => Buffer.byteLength(value);
export const maxLength = (length: number): string => `must be no more than ${length} characters`;
export const inclusiveRange = (low: number, high: number): string => `must be between ${low} and ${high}, inclusive`;
export const NON_EMPTY = "must be non-empty";

/** The text for a value that does not match `source`. */
export function regexError(message: string, source: string, ...examples: string[]): string {
  if (examples.length === 0) return `${message} (regex used for validation is '${source}')`;
  return `${message} (e.g. ${examples.map((example) => `'${example}', `).join(" or ")}regex used for validation is '${source}')`;
}

export function isDNS1123Label(value: string): string[] {
  const errors = bytes(value) > 63 ? [maxLength(63)] : [];
  if (LABEL_RE.test(value)) return errors;
  if (SUBDOMAIN_RE.test(value)) return [...errors, "must not contain dots"];
  const message =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
  return [...errors, regexError(message, LABEL, "my-name", "123-abc")];
}

export function isDNS1123Subdomain(value: string): string[] {
  const errors = bytes(value) > 253 ? [maxLength(253)] : [];
  if (SUBDOMAIN_RE.test(value)) return errors;
  const message =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
  return [...errors, regexError(message, SUBDOMAIN, "example.com")];
}

export function isDNS1123SubdomainWithUnderscore(value: string): string[] {
  const errors = bytes(value) > 253 ? [maxLength(253)] : [];
  if (UNDERSCORE_SUBDOMAIN_RE.test(value)) return errors;
  const message =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character";
  return [...errors, regexError(message, UNDERSCORE_SUBDOMAIN, "example.com")];
}

export function isDNS1035Label(value: string): string[] {
  const errors = bytes(value) > 63 ? [maxLength(63)] : [];
  if (LABEL_1035_RE.test(value)) return errors;
  const message =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
  return [...errors, regexError(message, LABEL_1035, "my-name", "abc-123")];
}

export function isWildcardDNS1123Subdomain(value: string): string[] {
  const errors = bytes(value) > 253 ? [maxLength(253)] : [];
  if (WILDCARD_RE.test(value)) return errors;
  const message =
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
  return [...errors, regexError(message, WILDCARD, "*.example.com")];
}

/** Keys of labels, names of finalizers and the like: `[prefix/]name`. */
export function isQualifiedName(value: string): string[] {
  const message =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
  const text = regexError(message, LABEL_KEY, "MyName", "my.name", "123-abc");
  const parts = value.split("/");
  if (parts.length > 2) {
    return [`a valid label key ${text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  }
  const errors: string[] = [];
  const name = parts.at(-1) ?? "";
  if (parts.length === 2) {
    const prefix = parts[0] ?? "";
    if (prefix === "") errors.push(`prefix part ${NON_EMPTY}`);
    else errors.push(...isDNS1123Subdomain(prefix).map((error) => `prefix part ${error}`));
  }
  if (name === "") errors.push(`name part ${NON_EMPTY}`);
  else if (bytes(name) > 63) errors.push("name part must be no more than 63 bytes");
  if (!LABEL_KEY_RE.test(name)) errors.push(`name part ${text}`);
  return errors;
}

export function isLabelValue(value: string): string[] {
  const errors = bytes(value) > 63 ? ["must be no more than 63 bytes"] : [];
  if (LABEL_VALUE_RE.test(value)) return errors;
  const message =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
  return [...errors, regexError(message, LABEL_VALUE, "MyValue", "my_value", "12345")];
}

export function isConfigMapKey(value: string): string[] {
  const errors = bytes(value) > 253 ? [maxLength(253)] : [];
  if (!CONFIG_KEY_RE.test(value)) {
    const message = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
    errors.push(regexError(message, CONFIG_KEY, "key.name", "KEY_NAME", "key-name"));
  }
  return [...errors, ...changeDirectoryPrefix(value)];
}

/** Names of environment variables of containers: since v1.32 any printable ASCII but `=`. */
export function isRelaxedEnvVarName(value: string): string[] {
  if (value === "") return [`environment variable name ${NON_EMPTY}`];
  if (/^[ -<>-~]*$/.test(value)) return [];
  return ["a valid environment variable name must consist only of printable ASCII characters other than '='"];
}

export function isEnvVarName(value: string): string[] {
  const errors: string[] = [];
  if (!ENV_NAME_RE.test(value)) {
    const message =
      "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit";
    errors.push(regexError(message, ENV_NAME, "my.env-name", "MY_ENV.NAME", "MyEnvName1"));
  }
  return [...errors, ...changeDirectoryPrefix(value)];
}

export function isHTTPHeaderName(value: string): string[] {
  if (HEADER_NAME_RE.test(value)) return [];
  const message = "a valid HTTP header must consist of alphanumeric characters or '-'";
  return [regexError(message, HEADER_NAME, "X-Header-Name")];
}

export function isPercent(value: string): string[] {
  if (PERCENT_RE.test(value)) return [];
  return [
    regexError("a valid percent string must be a numeric string followed by an ending '%'", PERCENT, "1%", "93%"),
  ];
}

export function isCIdentifier(value: string): string[] {
  if (C_IDENTIFIER_RE.test(value)) return [];
  const message =
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'";
  return [regexError(message, C_IDENTIFIER, "my_name", "MY_NAME", "MyName")];
}

export function isPortNumber(value: number): string[] {
  return Number.isInteger(value) && value >= 1 && value <= 65535 ? [] : [inclusiveRange(1, 65535)];
}

export function isPortName(value: string): string[] {
  const errors: string[] = [];
  if (bytes(value) > 15) errors.push(maxLength(15));
  if (!/^[-a-z0-9]+$/.test(value))
    errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (!/[a-z]/.test(value)) errors.push("must contain at least one letter (a-z)");
  if (value.includes("--")) errors.push("must not contain consecutive hyphens");
  if (value.startsWith("-") || value.endsWith("-")) errors.push("must not begin or end with a hyphen");
  return errors;
}

/** User and group ids. */
export function isUserID(value: number): string[] {
  return value >= 0 && value <= 2147483647 ? [] : [inclusiveRange(0, 2147483647)];
}

/** A path segment: what RBAC objects and a few others may be named. */
export function isPathSegmentName(value: string): string[] {
  if (value === "." || value === "..") return [`may not be '${value}'`];
  return ["/", "%"].filter((part) => value.includes(part)).map((part) => `may not contain '${part}'`);
}

function changeDirectoryPrefix(value: string): string[] {
  if (value === "." || value === "..") return [`must not be '${value}'`];
  return value.startsWith("..") ? ["must not start with '..'"] : [];
}

/** How a kind's names are checked; `prefix` for generateName, whose last dash is followed by a suffix. */
export type NameCheck = (name: string, prefix: boolean) => string[];

const masked = (name: string, prefix: boolean): string =>
  prefix && name.length > 1 && name.endsWith("-") ? `${name.slice(0, -2)}a` : name;

export const nameIsDNSSubdomain: NameCheck = (name, prefix) => isDNS1123Subdomain(masked(name, prefix));
export const nameIsDNSLabel: NameCheck = (name, prefix) => isDNS1123Label(masked(name, prefix));
export const nameIsPathSegment: NameCheck = (name, prefix) =>
  prefix ? isPathSegmentName(name).filter((text) => text.startsWith("may not contain")) : isPathSegmentName(name);
