import { isIP } from "node:net";
import { deepEqual } from "#base";
import type { HTTPIngressPath, Ingress, IngressBackend, IngressClass, IngressRule } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, immutable, invalidEach, oneOf } from "../validation/field-error.ts";
import {
  isDNS1123Label,
  isDNS1123Subdomain,
  isPortName,
  isPortNumber,
  isWildcardDNS1123Subdomain,
} from "../validation/names.ts";
import { validateDomainPrefixedPath, validateTypedReference } from "../validation/references.ts";

const CLASS_ANNOTATION = "kubernetes.io/ingress.class";

export function validateIngress({ metadata, spec = {} }: Ingress): FieldError[] {
  const errors = validateIngressSpec(spec);
  const annotation = metadata.annotations?.[CLASS_ANNOTATION];
  if (annotation !== undefined && spec.ingressClassName !== undefined && annotation !== spec.ingressClassName) {
    const text = "must match `ingressClassName` when both are specified";
    errors.push(fieldError.invalid(`annotations.${CLASS_ANNOTATION}`, annotation, text));
  }
  return errors;
}

/** The class may have been named twice since before `ingressClassName` was there. */
export function validateIngressUpdate({ spec = {} }: Ingress, _old: Ingress, subresource: string): FieldError[] {
  return subresource === "status" ? [] : validateIngressSpec(spec);
}

export function ingressWarnings({ metadata }: Ingress, old: Ingress | undefined): string[] {
  if (old || metadata.annotations?.[CLASS_ANNOTATION] === undefined) return [];
  return [`annotation "${CLASS_ANNOTATION}" is deprecated, please use 'spec.ingressClassName' instead`];
}

function validateIngressSpec(spec: NonNullable<Ingress["spec"]>): FieldError[] {
  const { rules = [], defaultBackend, tls, ingressClassName: name } = spec;
  const errors: FieldError[] = [];
  if (rules.length === 0 && !defaultBackend) {
    errors.push(fieldError.invalid("spec", spec.rules ?? null, "either `defaultBackend` or `rules` must be specified"));
  }
  if (defaultBackend) errors.push(...validateBackend(defaultBackend, "spec.defaultBackend"));
  errors.push(...eachItem(rules, "spec.rules", validateRule));
  errors.push(
    ...eachItem(tls, "spec.tls", ({ hosts, secretName }, at) => [
      ...eachItem(hosts, `${at}.hosts`, (host, path) => validateHost(host, path)),
      ...(secretName ? invalidEach(`${at}.secretName`, secretName, isDNS1123Subdomain(secretName)) : []),
    ]),
  );
  return name === undefined
    ? errors
    : [...errors, ...invalidEach("spec.ingressClassName", name, isDNS1123Subdomain(name))];
}

function validateHost(host: string, path: string): FieldError[] {
  return invalidEach(path, host, host.includes("*") ? isWildcardDNS1123Subdomain(host) : isDNS1123Subdomain(host));
}

function validateRule({ host = "", http }: IngressRule, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (isIP(host)) errors.push(fieldError.invalid(`${path}.host`, host, "must be a DNS name, not an IP address"));
  else if (host) errors.push(...validateHost(host, `${path}.host`));
  if (!http) return errors;
  if ((http.paths ?? []).length === 0) errors.push(fieldError.required(`${path}.http.paths`));
  return [...errors, ...eachItem(http.paths, `${path}.http.paths`, validateHttpPath)];
}

const INSIDE = ["//", "/./", "/../", "%2f", "%2F"];
const AT_END = ["/..", "/."];

function validateHttpPath({ path = "", pathType, backend }: HTTPIngressPath, at: string): FieldError[] {
  if (typeof pathType !== "string") return [fieldError.required(`${at}.pathType`, "pathType must be specified")];
  const errors: FieldError[] = [];
  const bad = (text: string) => errors.push(fieldError.invalid(`${at}.path`, path, text));
  switch (pathType) {
    case "Exact":
    case "Prefix":
      if (!path.startsWith("/")) bad("must be an absolute path");
      for (const part of INSIDE) if (path.includes(part)) bad(`must not contain '${part}'`);
      for (const end of AT_END) if (path.endsWith(end)) bad(`cannot end with '${end}'`);
      break;
    case "ImplementationSpecific":
      if (path && !path.startsWith("/")) bad("must be an absolute path");
      break;
    default:
      errors.push(fieldError.notSupported(`${at}.pathType`, pathType, ["Exact", "ImplementationSpecific", "Prefix"]));
  }
  return [...errors, ...validateBackend(backend ?? {}, `${at}.backend`)];
}

function validateBackend({ resource, service }: IngressBackend, path: string): FieldError[] {
  if (resource && service) return [fieldError.invalid(path, "", "cannot set both resource and service backends")];
  if (resource) return validateTypedReference(resource, `${path}.resource`);
  if (!service) return [fieldError.invalid(path, "", "resource or service backend is required")];
  const at = `${path}.service`;
  const errors = service.name
    ? invalidEach(`${at}.name`, service.name, isDNS1123Label(service.name))
    : [fieldError.required(`${at}.name`)];
  const { name = "", number = 0 } = service.port ?? {};
  if (name && number) return [...errors, fieldError.invalid(path, "", "cannot set both port name & port number")];
  if (name) return [...errors, ...invalidEach(`${at}.port.name`, name, isPortName(name))];
  if (number) return [...errors, ...invalidEach(`${at}.port.number`, number, isPortNumber(number))];
  return [...errors, fieldError.required(path, "port name or number is required")];
}

export function validateIngressClass({ spec = {} }: IngressClass): FieldError[] {
  const { controller = "", parameters } = spec;
  const errors = controller.length > 250 ? [fieldError.tooLong("spec.controller", 250)] : [];
  errors.push(...validateDomainPrefixedPath(controller, "spec.controller"));
  if (!parameters) return errors;
  const at = "spec.parameters";
  const { scope, namespace } = parameters;
  errors.push(...validateTypedReference(parameters, at));
  errors.push(...oneOf(`${at}.scope`, scope, ["Cluster", "Namespace"]));
  if (scope === "Namespace") {
    if (namespace === undefined) {
      errors.push(fieldError.required(`${at}.namespace`, "`parameters.scope` is set to 'Namespace'"));
    } else {
      errors.push(...invalidEach(`${at}.namespace`, namespace, isDNS1123Label(namespace)));
    }
  }
  if (scope === "Cluster" && namespace !== undefined) {
    errors.push(fieldError.forbidden(`${at}.namespace`, "`parameters.scope` is set to 'Cluster'"));
  }
  return errors;
}

export function validateIngressClassUpdate(ingressClass: IngressClass, old: IngressClass): FieldError[] {
  return [
    ...immutable("spec.controller", ingressClass.spec?.controller, old.spec?.controller, deepEqual),
    ...validateIngressClass(ingressClass),
  ];
}
