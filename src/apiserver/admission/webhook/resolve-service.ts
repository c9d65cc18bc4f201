import { resources } from "#kinds";
import type { Reader } from "../../ports.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Where a port of a Service is reached: at one of its ready endpoints, as its cluster IP would lead to. Without any the cluster IP
 * itself, which refuses. @throws Error in the original's words for a Service or port that is not there
 */
export function resolveService(reader: Reader, namespace: string, name: string, port: number): Address {
  const service = reader.get(resources.services, namespace, name);
  if (!service) throw new Error(`service ${JSON.stringify(name)} not found`);
  const chosen = service.spec?.ports?.find((one) => one.port === port);
  if (!chosen) throw new Error(`no service port ${port} found for service ${JSON.stringify(name)}`);
  for (const slice of reader.list(resources.endpointSlices, namespace)) {
    if (slice.metadata.labels?.["kubernetes.io/service-name"] !== name) continue;
    const at = slice.ports?.find((one) => (one.name ?? "") === (chosen.name ?? ""))?.port;
    const host = slice.endpoints?.find(({ conditions }) => conditions?.ready !== false)?.addresses[0];
    if (host && at) return { host, port: at };
  }
  return { host: service.spec?.clusterIP || "127.0.0.1", port };
}
