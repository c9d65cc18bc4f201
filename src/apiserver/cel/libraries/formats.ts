import { type Environment, Optional } from "@marcbachmann/cel-js";
import {
  isDNS1035Label,
  isDNS1123Label,
  isDNS1123Subdomain,
  isLabelValue,
  isQualifiedName,
  nameIsDNSLabel,
  nameIsDNSSubdomain,
} from "#kinds";
import { matchesFormat } from "../../crd/schema/formats.ts";
import { comparableType, functions, namespace } from "./register.ts";
import { uriError } from "./urls.ts";

const TYPE = "kubernetes.NamedFormat";

/** A named check of texts: gives what is wrong. */
export class NamedFormat {
  readonly name: string;
  readonly check: (text: string) => string[];
  constructor(name: string, check: (text: string) => string[]) {
    this.name = name;
    this.check = check;
  }
}

const masked = (text: string) => (text.length > 1 && text.endsWith("-") ? `${text.slice(0, -2)}a` : text);
const builtIn = (format: string, message: string) => (text: string) => (matchesFormat(format, text) ? [] : [message]);

const FORMATS: Readonly<Record<string, NamedFormat>> = {
  dns1123Label: new NamedFormat("DNS1123Label", isDNS1123Label),
  dns1123Subdomain: new NamedFormat("DNS1123Subdomain", isDNS1123Subdomain),
  dns1035Label: new NamedFormat("DNS1035Label", isDNS1035Label),
  qualifiedName: new NamedFormat("QualifiedName", isQualifiedName),
  dns1123LabelPrefix: new NamedFormat("DNS1123LabelPrefix", (text) => nameIsDNSLabel(text, true)),
  dns1123SubdomainPrefix: new NamedFormat("DNS1123SubdomainPrefix", (text) => nameIsDNSSubdomain(text, true)),
  dns1035LabelPrefix: new NamedFormat("DNS1035LabelPrefix", (text) => isDNS1035Label(masked(text))),
  labelValue: new NamedFormat("LabelValue", isLabelValue),
  uri: new NamedFormat("URI", (text) => {
    const error = uriError(text);
    return error ? [error] : [];
  }),
  uuid: new NamedFormat("uuid", builtIn("uuid", "does not match the UUID format")),
  byte: new NamedFormat("byte", builtIn("byte", "invalid base64")),
  date: new NamedFormat("date", builtIn("date", "invalid date")),
  datetime: new NamedFormat("datetime", builtIn("date-time", "invalid datetime")),
};

/** https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-format-library */
export function registerFormats(env: Environment): void {
  comparableType(env, TYPE, NamedFormat, (a, b) => a === b);
  namespace(env, "format", "FormatNamespace");
  functions(env, {
    [`FormatNamespace.named(string): optional<${TYPE}>`]: (_: unknown, name: string) =>
      Object.hasOwn(FORMATS, name) ? Optional.of(FORMATS[name]) : Optional.none(),
    [`${TYPE}.validate(string): optional<list<string>>`]: (format: NamedFormat, text: string) => {
      const errors = format.check(text);
      return errors.length > 0 ? Optional.of(errors) : Optional.none();
    },
  });
  for (const [name, format] of Object.entries(FORMATS))
    functions(env, { [`FormatNamespace.${name}(): ${TYPE}`]: () => format });
}
