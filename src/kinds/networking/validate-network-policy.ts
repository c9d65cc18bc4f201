import { BlockList, isIPv4 } from "node:net";
import type { IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, invalidEach, oneOf } from "../validation/field-error.ts";
import { isCIDR, validateStrictCIDR } from "../validation/ip.ts";
import { validateLabelSelector } from "../validation/label-selector.ts";
import { isPortName, isPortNumber } from "../validation/names.ts";

const TYPES = ["Ingress", "Egress"];
const PROTOCOLS = ["TCP", "UDP", "SCTP"];

export function validateNetworkPolicy({ spec }: NetworkPolicy): FieldError[] {
  if (!spec) return [];
  const errors = validateLabelSelector(spec.podSelector, "spec.podSelector");
  errors.push(
    ...eachItem(spec.ingress, "spec.ingress", ({ ports, from }, at) => [
      ...eachItem(ports, `${at}.ports`, validatePort),
      ...eachItem(from, `${at}.from`, validatePeer),
    ]),
    ...eachItem(spec.egress, "spec.egress", ({ ports, to }, at) => [
      ...eachItem(ports, `${at}.ports`, validatePort),
      ...eachItem(to, `${at}.to`, validatePeer),
    ]),
  );
  const types = spec.policyTypes ?? [];
  if (types.length > TYPES.length) {
    return [...errors, fieldError.invalid("spec.policyTypes", types, "may not specify more than two policyTypes")];
  }
  return [...errors, ...eachItem(types, "spec.policyTypes", (type, at) => oneOf(at, type, TYPES))];
}

function validatePort({ port, endPort, protocol }: NetworkPolicyPort, path: string): FieldError[] {
  const errors = protocol === undefined ? [] : oneOf(`${path}.protocol`, protocol, PROTOCOLS);
  const badEnd = (value: number, text: string) => errors.push(fieldError.invalid(`${path}.endPort`, value, text));
  if (typeof port === "number") {
    errors.push(...invalidEach(`${path}.port`, port, isPortNumber(port)));
    if (endPort === undefined) return errors;
    // the value shown is that of the port, as it is in the API server
    if (endPort < port) badEnd(port, "must be greater than or equal to `port`");
    return [...errors, ...invalidEach(`${path}.endPort`, endPort, isPortNumber(endPort))];
  }
  if (endPort !== undefined) {
    badEnd(endPort, `may not be specified when \`port\` is ${port === undefined ? "not specified" : "non-numeric"}`);
  }
  return port === undefined ? errors : [...errors, ...invalidEach(`${path}.port`, port, isPortName(port))];
}

function validatePeer({ podSelector, namespaceSelector, ipBlock }: NetworkPolicyPeer, path: string): FieldError[] {
  const errors = [
    ...validateLabelSelector(podSelector, `${path}.podSelector`),
    ...validateLabelSelector(namespaceSelector, `${path}.namespaceSelector`),
    ...(ipBlock ? validateIPBlock(ipBlock, `${path}.ipBlock`) : []),
  ];
  if (!podSelector && !namespaceSelector && !ipBlock) errors.push(fieldError.required(path, "must specify a peer"));
  if (ipBlock && (podSelector || namespaceSelector)) {
    errors.push(fieldError.forbidden(path, "may not specify both ipBlock and another peer"));
  }
  return errors;
}

function validateIPBlock({ cidr, except }: IPBlock, path: string): FieldError[] {
  if (!cidr) return [fieldError.required(`${path}.cidr`)];
  const errors = validateStrictCIDR(cidr, `${path}.cidr`);
  if (!isCIDR(cidr)) return errors;
  const inside = strictlyInside(cidr);
  return [
    ...errors,
    ...eachItem(except, `${path}.except`, (range, at) => {
      const found = validateStrictCIDR(range, at);
      if (!isCIDR(range) || inside(range)) return found;
      return [...found, fieldError.invalid(at, range, "must be a strict subset of `cidr`")];
    }),
  ];
}

function strictlyInside(cidr: string): (range: string) => boolean {
  const [net = "", bits = ""] = cidr.split("/");
  const family = (address: string) => (isIPv4(address) ? "ipv4" : "ipv6");
  const list = new BlockList();
  list.addSubnet(net, Number(bits), family(net));
  return (range) => {
    const [address = "", length = ""] = range.split("/");
    return family(address) === family(net) && list.check(address, family(address)) && Number(length) > Number(bits);
  };
}
