import type { Service, ServicePort } from "../../generated/types.ts";
import type { FieldError } from "../../status-error.ts";
import { eachItem, fieldError, invalidEach, oneOf } from "../../validation/field-error.ts";
import { isIPv4, validateIP } from "../../validation/ip.ts";
import { validateLabels } from "../../validation/object-meta.ts";
import {
  isDNS1123Label,
  isDNS1123Subdomain,
  isPortName,
  isPortNumber,
  isQualifiedName,
} from "../../validation/names.ts";
import { validateClusterIPs } from "./validate-addresses.ts";
import { validateExternalTraffic, validateSourceRanges, validateUsableIP } from "./validate-external.ts";

const PROTOCOLS = ["SCTP", "TCP", "UDP"];
const DISTRIBUTIONS = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const MAX_AFFINITY_SECONDS = 86_400;

/** https://kubernetes.io/docs/reference/kubernetes-api/service-resources/service-v1/ */
export function validateService(service: Service): FieldError[] {
  return validateSpec(service, undefined);
}

export function validateServiceUpdate(service: Service, old: Service, subresource: string): FieldError[] {
  if (subresource === "status") return validateStatus(service);
  const balanced = service.spec.type === "LoadBalancer" && old.spec.type === "LoadBalancer";
  const path = "spec.loadBalancerClass";
  const { loadBalancerClass = null } = service.spec;
  const changed = balanced && loadBalancerClass !== (old.spec.loadBalancerClass ?? null);
  return [
    ...(changed ? [fieldError.invalid(path, loadBalancerClass, "may not change once set")] : []),
    ...validateSpec(service, old),
  ];
}

function validateSpec(service: Service, old: Service | undefined): FieldError[] {
  const { spec } = service;
  return [
    ...validateType(service),
    ...validatePorts(service),
    ...validateLabels(spec.selector, "spec.selector"),
    ...validateSessionAffinity(service),
    ...validateClusterIPs(service, old),
    ...eachItem(spec.externalIPs, "spec.externalIPs", validateUsableIP),
    ...oneOf("spec.type", spec.type, ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
    ...validateNodePorts(service),
    ...validateSourceRanges(service),
    ...validateLoadBalancer(service),
    ...validateExternalTraffic(service),
    ...validateInternalPolicy(service),
    ...validateDistribution(spec.trafficDistribution),
  ];
}

function validateStatus({ status }: Service): FieldError[] {
  return eachItem(status?.loadBalancer?.ingress, "status.loadBalancer.ingress", (ingress, at) => [
    ...(ingress.ip ? validateIP(ingress.ip, `${at}.ip`) : []),
    ...(ingress.hostname ? invalidEach(`${at}.hostname`, ingress.hostname, isDNS1123Subdomain(ingress.hostname)) : []),
  ]);
}

function validateType({ spec }: Service): FieldError[] {
  if (spec.type !== "ExternalName") return [];
  const errors: FieldError[] = [];
  if ((spec.clusterIPs ?? []).length > 0 || spec.clusterIP)
    errors.push(fieldError.forbidden("spec.clusterIPs", "may not be set for ExternalName services"));
  if ((spec.ipFamilies ?? []).length > 0)
    errors.push(fieldError.forbidden("spec.ipFamilies", "may not be set for ExternalName services"));
  if (spec.ipFamilyPolicy)
    errors.push(fieldError.forbidden("spec.ipFamilyPolicy", "may not be set for ExternalName services"));
  const name = spec.externalName ?? "";
  // the dot that ends an absolute name is taken off
  if (name === "") errors.push(fieldError.required("spec.externalName"));
  else errors.push(...invalidEach("spec.externalName", name, isDNS1123Subdomain(name.replace(/\.$/, ""))));
  return errors;
}

function validatePorts(service: Service): FieldError[] {
  const { spec } = service;
  const ports = spec.ports ?? [];
  const headless = spec.clusterIP === "None";
  const errors: FieldError[] = [];
  if (ports.length === 0 && !headless && spec.type !== "ExternalName") errors.push(fieldError.required("spec.ports"));
  const names = new Set<string>();
  errors.push(
    ...eachItem(ports, "spec.ports", (port, at) => validatePort(port, { names, alone: ports.length === 1 }, at)),
  );
  const seen = new Set<string>();
  errors.push(
    ...eachItem(ports, "spec.ports", ({ protocol, port }, at) => {
      const key = `${protocol}/${port}`;
      if (!seen.has(key)) {
        seen.add(key);
        return [];
      }
      // the original shows the part of the port that counts, by the names of its own fields
      const shown = { Name: "", Protocol: protocol, AppProtocol: null, Port: port, TargetPort: 0, NodePort: 0 };
      return [fieldError.duplicate(at, shown)];
    }),
  );
  return errors;
}

function validatePort(
  port: ServicePort,
  { names, alone }: { names: Set<string>; alone: boolean },
  at: string,
): FieldError[] {
  const { name = "", protocol = "", appProtocol, targetPort } = port;
  const errors: FieldError[] = [];
  if (name === "") {
    if (!alone) errors.push(fieldError.required(`${at}.name`));
  } else {
    errors.push(...invalidEach(`${at}.name`, name, isDNS1123Label(name)));
    if (names.has(name)) errors.push(fieldError.duplicate(`${at}.name`, name));
    names.add(name);
  }
  errors.push(...invalidEach(`${at}.port`, port.port ?? 0, isPortNumber(port.port ?? 0)));
  if (protocol === "") errors.push(fieldError.required(`${at}.protocol`));
  else errors.push(...oneOf(`${at}.protocol`, protocol, PROTOCOLS));
  const target = targetPort ?? 0;
  errors.push(
    ...invalidEach(`${at}.targetPort`, target, typeof target === "number" ? isPortNumber(target) : isPortName(target)),
  );
  if (appProtocol !== undefined)
    errors.push(...invalidEach(`${at}.appProtocol`, appProtocol, isQualifiedName(appProtocol)));
  return errors;
}

function validateSessionAffinity({ spec }: Service): FieldError[] {
  const { sessionAffinity, sessionAffinityConfig } = spec;
  const path = "spec.sessionAffinityConfig";
  if (!sessionAffinity) return [fieldError.required("spec.sessionAffinity")];
  const errors = oneOf("spec.sessionAffinity", sessionAffinity, ["ClientIP", "None"]);
  if (sessionAffinity === "None" && sessionAffinityConfig)
    errors.push(fieldError.forbidden(path, "must not be set when session affinity is None"));
  if (sessionAffinity !== "ClientIP") return errors;
  const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds;
  if (seconds === undefined)
    errors.push(
      fieldError.required(`${path}.clientIP.timeoutSeconds`, "must be set when session affinity is ClientIP"),
    );
  else if (seconds <= 0 || seconds > MAX_AFFINITY_SECONDS)
    errors.push(
      fieldError.invalid(
        `${path}.clientIP.timeoutSeconds`,
        seconds,
        `must be greater than 0 and less than ${MAX_AFFINITY_SECONDS}`,
      ),
    );
  return errors;
}

function validateNodePorts(service: Service): FieldError[] {
  const { spec } = service;
  const errors: FieldError[] = [];
  if (spec.type === "ClusterIP")
    errors.push(
      ...eachItem(spec.ports, "spec.ports", ({ nodePort }, at) =>
        nodePort ? [fieldError.forbidden(`${at}.nodePort`, `may not be used when \`type\` is '${spec.type}'`)] : [],
      ),
    );
  const seen = new Set<string>();
  errors.push(
    ...eachItem(spec.ports, "spec.ports", ({ nodePort, protocol }, at) => {
      const key = `${protocol}/${nodePort}`;
      if (!nodePort) return [];
      if (seen.has(key)) return [fieldError.duplicate(`${at}.nodePort`, nodePort)];
      seen.add(key);
      return [];
    }),
  );
  return errors;
}

function validateLoadBalancer({ spec }: Service): FieldError[] {
  const errors: FieldError[] = [];
  const balanced = spec.type === "LoadBalancer";
  const only = (field: string) => fieldError.forbidden(field, "may only be used when `type` is 'LoadBalancer'");
  if (balanced && spec.allocateLoadBalancerNodePorts === undefined)
    errors.push(fieldError.required("spec.allocateLoadBalancerNodePorts"));
  if (!balanced && spec.allocateLoadBalancerNodePorts !== undefined)
    errors.push(only("spec.allocateLoadBalancerNodePorts"));
  const name = spec.loadBalancerClass;
  if (name === undefined) return errors;
  if (!balanced) errors.push(only("spec.loadBalancerClass"));
  else errors.push(...invalidEach("spec.loadBalancerClass", name, isQualifiedName(name)));
  return errors;
}

function validateInternalPolicy({ spec }: Service): FieldError[] {
  if (spec.internalTrafficPolicy === undefined)
    return spec.type === "ExternalName" ? [] : [fieldError.required("spec.internalTrafficPolicy")];
  return oneOf("spec.internalTrafficPolicy", spec.internalTrafficPolicy, ["Cluster", "Local"]);
}

function validateDistribution(distribution: string | undefined): FieldError[] {
  return distribution === undefined ? [] : oneOf("spec.trafficDistribution", distribution, DISTRIBUTIONS);
}

/** Things that are taken and do nothing, or will not for long. */
export function serviceWarnings(service: Service): string[] {
  const { spec } = service;
  const texts: string[] = [];
  if (spec.clusterIP === "None" && spec.sessionAffinity === "ClientIP")
    texts.push("spec.SessionAffinity is ignored for headless services");
  if (spec.clusterIP === "None" && spec.loadBalancerIP)
    texts.push("spec.loadBalancerIP is ignored for headless services");
  if ((spec.externalIPs ?? []).length > 0)
    texts.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
  if (spec.externalName && spec.type !== "ExternalName")
    texts.push('spec.externalName is ignored when spec.type is not "ExternalName"');
  if (spec.trafficDistribution === "PreferClose")
    texts.push('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"');
  for (const [i, address] of (spec.externalIPs ?? []).entries())
    texts.push(...oddAddress(`spec.externalIPs[${i}]`, address));
  return texts;
}

function oddAddress(path: string, address: string): string[] {
  if (!/^\d+(\.\d+){3}$/.test(address) || !/(^|\.)0\d/.test(address) || !isIPv4(address)) return [];
  return [`${path}: non-standard IP address "${address}" will be considered invalid in a future Kubernetes release`];
}
