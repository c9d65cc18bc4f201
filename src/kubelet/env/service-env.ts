import type { DeepReadonly } from "#base";
import type { Service } from "#kinds";

/**
 * The environment variables that tell a container where the services of its namespace are: `<NAME>_SERVICE_HOST`,
 * `<NAME>_SERVICE_PORT[_<PORT NAME>]` and the older `<NAME>_PORT_…` family. `default/kubernetes` is always among them, the
 * others only with `enableServiceLinks`; a service `kubernetes` of the pod's own namespace replaces it. Headless services
 * have none.
 *
 * Source: https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
export function serviceEnvironment(
  services: readonly DeepReadonly<Service>[],
  namespace: string,
  enableServiceLinks: boolean,
): Map<string, string> {
  const chosen = new Map<string, DeepReadonly<Service>>();
  for (const service of services) {
    const name = service.metadata?.name ?? "";
    const clusterIP = service.spec?.clusterIP;
    if (!clusterIP || clusterIP === "None") continue;
    if (service.metadata?.namespace === "default" && name === "kubernetes") {
      if (!chosen.has(name)) chosen.set(name, service);
    } else if (service.metadata?.namespace === namespace && enableServiceLinks) {
      chosen.set(name, service);
    }
  }
  const result = new Map<string, string>();
  for (const name of [...chosen.keys()].sort()) addVariables(result, name, chosen.get(name) as DeepReadonly<Service>);
  return result;
}

function addVariables(result: Map<string, string>, name: string, service: DeepReadonly<Service>): void {
  const prefix = variableName(name);
  const address = service.spec?.clusterIP ?? "";
  const ports = service.spec?.ports ?? [];
  const first = ports[0];
  result.set(`${prefix}_SERVICE_HOST`, address);
  if (!first) return;
  result.set(`${prefix}_SERVICE_PORT`, String(first.port));
  for (const port of ports) {
    if (port.name) result.set(`${prefix}_SERVICE_PORT_${variableName(port.name)}`, String(port.port));
  }
  for (const port of ports) {
    const protocol = (port.protocol ?? "TCP").toLowerCase();
    const url = `${protocol}://${address.includes(":") ? `[${address}]` : address}:${port.port}`;
    const link = `${prefix}_PORT_${port.port}_${protocol.toUpperCase()}`;
    if (port === first) result.set(`${prefix}_PORT`, url);
    result.set(link, url);
    result.set(`${link}_PROTO`, protocol);
    result.set(`${link}_PORT`, String(port.port));
    result.set(`${link}_ADDR`, address);
  }
}

const variableName = (name: string) => name.replaceAll("-", "_").toUpperCase();
