import type {
  ConfigMap,
  EndpointSlice,
  Ingress,
  Namespace,
  PersistentVolumeClaim,
  Pod,
  ResourceQuota,
  Secret,
  Service,
  ServiceAccount,
} from "#kinds";
import { annotationLines, type DescribeWriter, longTime, pairsLines, since } from "./writer.ts";
import { ACCESS } from "./volumes.ts";

export function describeConfigMap(writer: DescribeWriter, { metadata, data = {}, binaryData = {} }: ConfigMap): void {
  head(writer, metadata);
  writer.line(0, "");
  writer.line(0, "Data");
  writer.line(0, "====");
  for (const key of Object.keys(data).sort()) {
    writer.line(0, `${key}:`);
    writer.line(0, "----");
    writer.line(0, `${data[key]}`);
    writer.line(0, "");
  }
  writer.line(0, "");
  writer.line(0, "BinaryData");
  writer.line(0, "====");
  for (const key of Object.keys(binaryData).sort())
    writer.line(0, `${key}: ${Buffer.from(binaryData[key]!, "base64").length} bytes`);
  writer.line(0, "");
}

function head(
  writer: DescribeWriter,
  metadata: {
    name?: string;
    namespace?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  },
): void {
  writer.line(0, `Name:\t${metadata.name}`);
  writer.line(0, `Namespace:\t${metadata.namespace}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
}

export function describeSecret(writer: DescribeWriter, { metadata, type, data = {} }: Secret): void {
  head(writer, metadata);
  writer.line(0, "");
  writer.line(0, `Type:\t${type}`);
  writer.line(0, "");
  writer.line(0, "Data");
  writer.line(0, "====");
  for (const key of Object.keys(data).sort()) {
    const bytes = Buffer.from(data[key] ?? "", "base64");
    const shown =
      type === "kubernetes.io/service-account-token" && key === "token"
        ? bytes.toString("utf8")
        : `${bytes.length} bytes`;
    writer.line(0, `${key}:\t${shown}`);
  }
}

export function describeServiceAccount(writer: DescribeWriter, account: ServiceAccount): void {
  const { metadata, imagePullSecrets = [], secrets = [] } = account;
  head(writer, metadata);
  const names = (title: string, list: readonly string[]) => {
    if (list.length === 0) {
      writer.line(0, `${title}:\t<none>`);
      return;
    }
    list.forEach((name, i) => {
      writer.line(0, `${i === 0 ? `${title}:` : ""}\t${name}`);
    });
  };
  names(
    "Image pull secrets",
    imagePullSecrets.map(({ name = "" }) => name),
  );
  const mountable = secrets.map(({ name = "" }) => name);
  if (mountable.length > 0) names("Mountable secrets", mountable);
}

export function describeNamespace(
  writer: DescribeWriter,
  { metadata, status }: Namespace,
  quotas: readonly ResourceQuota[],
  limitRanges: readonly object[],
): void {
  writer.line(0, `Name:\t${metadata.name}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
  writer.line(0, `Status:\t${status?.phase}`);
  if (status?.conditions?.length) {
    writer.line(0, "Conditions:");
    writer.line(1, "Type\tStatus\tLastTransitionTime\tReason\tMessage");
    writer.line(1, "----\t------\t------------------\t------\t-------");
    for (const { type, status: value, lastTransitionTime, reason, message } of status.conditions)
      writer.line(1, `${type}\t${value}\t${longTime(lastTransitionTime)}\t${reason}\t${message}`);
  }
  writer.line(0, "");
  if (quotas.length === 0) writer.line(0, "No resource quota.");
  else writeQuotas(writer, quotas);
  writer.line(0, "");
  writer.line(0, limitRanges.length === 0 ? "No LimitRange resource." : "Resource Limits");
}

function writeQuotas(writer: DescribeWriter, quotas: readonly ResourceQuota[]): void {
  writer.line(0, "Resource Quotas");
  for (const { metadata, status } of [...quotas].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
    writer.line(0, `  Name:\t${metadata.name}`);
    writer.line(0, "  Resource\tUsed\tHard");
    writer.line(0, "  --------\t---\t---");
    for (const key of Object.keys(status?.hard ?? {}).sort())
      writer.line(0, `  ${key}\t${status?.used?.[key] ?? ""}\t${status?.hard?.[key]}`);
  }
}

export function describeClaim(writer: DescribeWriter, claim: PersistentVolumeClaim, pods: readonly Pod[]): void {
  const { metadata, spec, status } = claim;
  writer.line(0, `Name:\t${metadata.name}`);
  writer.line(0, `Namespace:\t${metadata.namespace}`);
  writer.line(0, `StorageClass:\t${spec?.storageClassName ?? ""}`);
  writer.line(
    0,
    metadata.deletionTimestamp
      ? `Status:\tTerminating (lasts ${since(metadata.deletionTimestamp, writer.now)})`
      : `Status:\t${status?.phase}`,
  );
  writer.line(0, `Volume:\t${spec?.volumeName ?? ""}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
  writer.line(0, `Finalizers:\t[${(metadata.finalizers ?? []).join(" ")}]`);
  const bound = spec?.volumeName ? status : undefined;
  writer.line(0, `Capacity:\t${bound?.capacity?.storage ?? ""}`);
  writer.line(0, `Access Modes:\t${(bound?.accessModes ?? []).map((mode) => ACCESS[mode] ?? mode).join(",")}`);
  if (spec?.volumeMode) writer.line(0, `VolumeMode:\t${spec.volumeMode}`);
  const users = pods.filter((pod) =>
    (pod.spec.volumes ?? []).some((volume) => volume.persistentVolumeClaim?.claimName === metadata.name),
  );
  if (users.length === 0) writer.line(0, "Used By:\t<none>");
  else
    users.forEach((pod, i) => {
      writer.line(0, `${i === 0 ? "Used By:" : ""}\t${pod.metadata.name}`);
    });
}

export function describeService(writer: DescribeWriter, service: Service, slices: readonly EndpointSlice[]): void {
  const { metadata, spec = {} as NonNullable<Service["spec"]>, status } = service;
  head(writer, metadata);
  writer.add(
    pairsLines("Selector", spec.selector)
      .replaceAll("\n\t", "\n\t")
      .replace(/\n(?=.)/g, ",")
      .replace(/,\t/g, ","),
  );
  writer.line(0, `Type:\t${spec.type}`);
  if (spec.ipFamilyPolicy) writer.line(0, `IP Family Policy:\t${spec.ipFamilyPolicy}`);
  if (spec.ipFamilies) writer.line(0, `IP Families:\t${spec.ipFamilies.join(",") || "<none>"}`);
  writer.line(0, `IP:\t${spec.clusterIP ?? ""}`);
  if (spec.clusterIPs) writer.line(0, `IPs:\t${spec.clusterIPs.join(",") || "<none>"}`);
  if (spec.externalIPs?.length) writer.line(0, `External IPs:\t${spec.externalIPs.join(",")}`);
  if (spec.loadBalancerIP) writer.line(0, `Desired LoadBalancer IP:\t${spec.loadBalancerIP}`);
  if (spec.externalName) writer.line(0, `External Name:\t${spec.externalName}`);
  const ingress = status?.loadBalancer?.ingress ?? [];
  if (ingress.length > 0)
    writer.line(
      0,
      `LoadBalancer Ingress:\t${ingress.map(({ ip, hostname, ipMode }) => (ip ? (ipMode ? `${ip} (${ipMode})` : ip) : hostname)).join(", ")}`,
    );
  for (const port of spec.ports ?? []) {
    writer.line(0, `Port:\t${port.name || "<unset>"}\t${port.port}/${port.protocol}`);
    writer.line(0, `TargetPort:\t${port.targetPort}/${port.protocol}`);
    if (port.nodePort) writer.line(0, `NodePort:\t${port.name || "<unset>"}\t${port.nodePort}/${port.protocol}`);
    writer.line(0, `Endpoints:\t${endpointsText(slices, port.name ?? "")}`);
  }
  writer.line(0, `Session Affinity:\t${spec.sessionAffinity}`);
  if (spec.externalTrafficPolicy) writer.line(0, `External Traffic Policy:\t${spec.externalTrafficPolicy}`);
  if (spec.internalTrafficPolicy) writer.line(0, `Internal Traffic Policy:\t${spec.internalTrafficPolicy}`);
  if (spec.healthCheckNodePort) writer.line(0, `HealthCheck NodePort:\t${spec.healthCheckNodePort}`);
  if (spec.loadBalancerSourceRanges?.length)
    writer.line(0, `LoadBalancer Source Ranges:\t${spec.loadBalancerSourceRanges.join(",")}`);
}

/** The first three addresses of a port. */
function endpointsText(slices: readonly EndpointSlice[], portName: string): string {
  const all = slices.flatMap(({ endpoints, ports }) => {
    const port = (ports ?? []).find(({ name }) => (name ?? "") === portName)?.port;
    if (port === undefined) return [];
    return (endpoints ?? [])
      .filter(({ conditions }) => conditions?.ready !== false)
      .flatMap(({ addresses }) =>
        addresses.map((address) => `${address.includes(":") ? `[${address}]` : address}:${port}`),
      );
  });
  if (all.length <= 3) return all.join(",") || "<none>";
  return `${all.slice(0, 3).join(",")} + ${all.length - 3} more...`;
}

export function describeIngress(
  writer: DescribeWriter,
  { metadata, spec, status }: Ingress,
  backendText: (name: string, port: number | string) => string,
): void {
  const addresses = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip ?? hostname ?? "").join(",");
  writer.line(0, `Name:\t${metadata.name}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.line(0, `Namespace:\t${metadata.namespace}`);
  writer.line(0, `Address:\t${addresses}`);
  writer.line(0, `Ingress Class:\t${spec?.ingressClassName ?? "<none>"}`);
  const backend = (of: {
    service?: { name: string; port?: { name?: string; number?: number } };
    resource?: { apiGroup?: string; kind: string; name: string };
  }) => {
    if (!of.service)
      return `APIGroup: ${of.resource?.apiGroup ?? "<none>"}, Kind: ${of.resource?.kind}, Name: ${of.resource?.name}`;
    const port = of.service.port?.number ?? of.service.port?.name ?? "";
    return `${of.service.name}:${port} (${backendText(of.service.name, port)})`;
  };
  writer.line(0, `Default backend:\t${spec?.defaultBackend ? backend(spec.defaultBackend) : "<default>"}`);
  if (spec?.tls?.length) {
    writer.line(0, "TLS:");
    for (const { secretName, hosts = [] } of spec.tls)
      writer.line(1, secretName ? `${secretName} terminates ${hosts.join(",")}` : `SNI routes ${hosts.join(",")}`);
  }
  writer.line(0, "Rules:");
  writer.line(1, "Host\tPath\tBackends");
  writer.line(1, "----\t----\t--------");
  for (const { host, http } of spec?.rules ?? []) {
    writer.line(1, `${host || "*"}\t`);
    for (const { path = "", backend: to } of http?.paths ?? []) writer.line(2, `\t${path} \t${backend(to)}`);
  }
  if (!spec?.rules?.length)
    writer.line(1, `*\t*\t${spec?.defaultBackend ? backend(spec.defaultBackend) : "<default>"}`);
  writer.add(annotationLines(metadata.annotations));
}

/** Kinds without a description of their own: the fields of the object, one a line. */
export function describeAny(writer: DescribeWriter, object: object): void {
  const { metadata = {}, ...rest } = object as { metadata?: Record<string, unknown> };
  writer.line(0, `Name:\t${metadata.name}`);
  writer.line(0, `Namespace:\t${metadata.namespace ?? ""}`);
  writer.add(pairsLines("Labels", metadata.labels as Record<string, string> | undefined));
  writer.add(annotationLines(metadata.annotations as Record<string, string> | undefined));
  const {
    name: _n,
    namespace: _ns,
    labels: _l,
    annotations: _a,
    managedFields: _m,
    selfLink: _s,
    ...others
  } = metadata;
  writeAny(writer, 0, rest as Record<string, unknown>, others);
}

function writeAny(
  writer: DescribeWriter,
  level: number,
  value: Record<string, unknown>,
  metadata?: Record<string, unknown>,
): void {
  const fields = metadata && Object.keys(metadata).length > 0 ? { ...value, metadata } : value;
  const titled = Object.keys(fields)
    .map((key) => ({ key, title: smartTitle(key) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  for (const { key, title } of titled) writeField(writer, level, title, fields[key]);
}

function writeField(writer: DescribeWriter, level: number, title: string, value: unknown): void {
  if (Array.isArray(value)) {
    writer.line(level, `${title}:`);
    for (const item of value) {
      if (typeof item === "object" && item !== null && !Array.isArray(item))
        writeAny(writer, level + 1, item as Record<string, unknown>);
      else writer.line(level + 1, String(item));
    }
  } else if (typeof value === "object" && value !== null) {
    writer.line(level, `${title}:`);
    writeAny(writer, level + 1, value as Record<string, unknown>);
  } else writer.line(level, `${title}:\t${value === null ? "<nil>" : String(value)}`);
}

const ACRONYMS = ["API", "URL", "UID", "OSB", "GUID"];

/** `resourceVersion` → `Resource Version` */
function smartTitle(key: string): string {
  const words = key.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2");
  return words
    .split(/[\s]+/)
    .map((word) => {
      const upper = word.toUpperCase();
      return ACRONYMS.includes(upper) ? upper : word.charAt(0).toUpperCase() + word.slice(1);
    })
    .join(" ");
}
