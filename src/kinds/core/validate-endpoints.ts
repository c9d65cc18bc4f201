import { deepEqual } from "#base";
import type { Endpoints, EndpointSlice } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, immutable, invalidEach, oneOf } from "../validation/field-error.ts";
import { isIPv4, isIPv6, validateIP } from "../validation/ip.ts";
import { isDNS1123Label, isDNS1123Subdomain, isPortNumber, isQualifiedName } from "../validation/names.ts";
import { validateNotSpecial } from "./service/validate-external.ts";

const PROTOCOLS = ["SCTP", "TCP", "UDP"];
const MAX_ENDPOINTS = 1000;
const MAX_ADDRESSES = 100;
const MAX_PORTS = 100;

type Subset = NonNullable<Endpoints["subsets"]>[number];
type Address = NonNullable<Subset["addresses"]>[number];
type Endpoint = NonNullable<EndpointSlice["endpoints"]>[number];

/** The legacy kind. https://kubernetes.io/docs/concepts/services-networking/service/#endpoints */
export function validateEndpoints({ subsets }: Endpoints): FieldError[] {
  return eachItem(subsets, "subsets", (subset, at) => {
    const { addresses = [], notReadyAddresses = [], ports = [] } = subset;
    const errors: FieldError[] = [];
    if (addresses.length + notReadyAddresses.length === 0)
      errors.push(fieldError.required(at, "must specify `addresses` or `notReadyAddresses`"));
    return [
      ...errors,
      ...eachItem(addresses, `${at}.addresses`, validateAddress),
      ...eachItem(notReadyAddresses, `${at}.notReadyAddresses`, validateAddress),
      ...eachItem(ports, `${at}.ports`, (port, path) => [
        ...(port.name
          ? invalidEach(`${path}.name`, port.name, isDNS1123Label(port.name))
          : ports.length > 1
            ? [fieldError.required(`${path}.name`)]
            : []),
        ...invalidEach(`${path}.port`, port.port ?? 0, isPortNumber(port.port ?? 0)),
        ...oneOf(`${path}.protocol`, port.protocol, PROTOCOLS),
        ...validateAppProtocol(port.appProtocol, path),
      ]),
    ];
  });
}

function validateAddress({ ip = "", hostname, nodeName }: Partial<Address>, at: string): FieldError[] {
  const errors = validateIP(ip, `${at}.ip`);
  if (hostname) errors.push(...invalidEach(`${at}.hostname`, hostname, isDNS1123Label(hostname)));
  if (nodeName !== undefined) errors.push(...invalidEach(`${at}.nodeName`, nodeName, isDNS1123Subdomain(nodeName)));
  // the second look at the address says it again, as the original does
  if (!isIPv4(ip) && !isIPv6(ip)) errors.push(fieldError.invalid(`${at}.ip`, ip, "must be a valid IP address"));
  else errors.push(...validateNotSpecial(ip, `${at}.ip`));
  return errors;
}

function validateAppProtocol(name: string | undefined, at: string): FieldError[] {
  return name === undefined ? [] : invalidEach(`${at}.appProtocol`, name, isQualifiedName(name));
}

/** https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/ */
export function validateEndpointSlice(slice: EndpointSlice): FieldError[] {
  const { addressType = "" } = slice;
  const endpoints = slice.endpoints ?? [];
  const ports = slice.ports ?? [];
  const errors =
    addressType === ""
      ? [fieldError.required("addressType")]
      : oneOf("addressType", addressType, ["FQDN", "IPv4", "IPv6"]);
  if (endpoints.length > MAX_ENDPOINTS) errors.push(fieldError.tooMany("endpoints", endpoints.length, MAX_ENDPOINTS));
  if (ports.length > MAX_PORTS) errors.push(fieldError.tooMany("ports", ports.length, MAX_PORTS));
  const names = new Set<string>();
  return [
    ...errors,
    ...eachItem(endpoints, "endpoints", (endpoint, at) => validateEndpoint(endpoint, addressType, at)),
    ...eachItem(ports, "ports", ({ name = "", protocol, appProtocol }, at) => {
      const found = name === "" ? [] : invalidEach(`${at}.name`, name, isDNS1123Label(name));
      if (names.has(name)) found.push(fieldError.duplicate(`${at}.name`, name));
      names.add(name);
      return [...found, ...oneOf(`${at}.protocol`, protocol, PROTOCOLS), ...validateAppProtocol(appProtocol, at)];
    }),
  ];
}

function validateEndpoint(endpoint: Endpoint, type: string, at: string): FieldError[] {
  const { hostname, nodeName } = endpoint;
  const addresses = endpoint.addresses ?? [];
  const path = `${at}.addresses`;
  const errors: FieldError[] = [];
  if (addresses.length === 0) errors.push(fieldError.required(path, "must contain at least 1 address"));
  if (addresses.length > MAX_ADDRESSES) errors.push(fieldError.tooMany(path, addresses.length, MAX_ADDRESSES));
  errors.push(...eachItem(addresses, path, (address, one) => validateOfType(address, type, { one, path })));
  if (nodeName !== undefined) errors.push(...invalidEach(`${at}.nodeName`, nodeName, isDNS1123Subdomain(nodeName)));
  if (hostname) errors.push(...invalidEach(`${at}.hostname`, hostname, isDNS1123Label(hostname)));
  return errors;
}

function validateOfType(address: string, type: string, { one, path }: { one: string; path: string }): FieldError[] {
  if (type === "FQDN") return invalidEach(one, address, isDNS1123Subdomain(address));
  if (type !== "IPv4" && type !== "IPv6") return [];
  const errors = validateIP(address, one);
  if (errors.length > 0) return errors;
  const fits = type === "IPv4" ? isIPv4(address) : isIPv6(address);
  return [
    ...(fits ? [] : [fieldError.invalid(path, address, `must be an ${type} address`)]),
    ...validateNotSpecial(address, one),
  ];
}

export function validateEndpointSliceUpdate(slice: EndpointSlice, old: EndpointSlice): FieldError[] {
  return [...validateEndpointSlice(slice), ...immutable("addressType", slice.addressType, old.addressType, deepEqual)];
}

export function endpointSliceWarnings({ addressType }: EndpointSlice): string[] {
  return addressType === "FQDN" ? ["spec.addressType: FQDN endpoints are deprecated"] : [];
}

/** The old map of topology labels is taken off endpoints. */
export function prepareEndpointSlice({ endpoints }: EndpointSlice): void {
  for (const endpoint of endpoints ?? []) delete endpoint.deprecatedTopology;
}
