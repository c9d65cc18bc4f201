import type { EndpointSlice, PriorityClass, StorageClass } from "#kinds";
import { annotationLines, type DescribeWriter, pairsLines } from "./writer.ts";

export function describePriorityClass(
  writer: DescribeWriter,
  { metadata, value, globalDefault, preemptionPolicy, description }: PriorityClass,
): void {
  writer.line(0, `Name:\t${metadata.name}`);
  writer.line(0, `Value:\t${value}`);
  writer.line(0, `GlobalDefault:\t${globalDefault ?? false}`);
  writer.line(0, `PreemptionPolicy:\t${preemptionPolicy}`);
  writer.line(0, `Description:\t${description ?? ""}`);
  writer.add(annotationLines(metadata.annotations));
}

export function describeStorageClass(
  writer: DescribeWriter,
  {
    metadata,
    provisioner,
    parameters,
    allowVolumeExpansion,
    mountOptions,
    reclaimPolicy,
    volumeBindingMode,
  }: StorageClass,
): void {
  const pairs = (values: Readonly<Record<string, string>> | undefined) =>
    Object.entries(values ?? {})
      .sort()
      .map(([key, value]) => `${key}=${value}`)
      .join(",") || "<none>";
  writer.line(0, `Name:\t${metadata.name}`);
  const isDefault = metadata.annotations?.["storageclass.kubernetes.io/is-default-class"] === "true";
  writer.line(0, `IsDefaultClass:\t${isDefault ? "Yes" : "No"}`);
  writer.line(0, `Annotations:\t${pairs(metadata.annotations)}`);
  writer.line(0, `Provisioner:\t${provisioner}`);
  writer.line(0, `Parameters:\t${pairs(parameters)}`);
  writer.line(
    0,
    `AllowVolumeExpansion:\t${allowVolumeExpansion === undefined ? "<unset>" : allowVolumeExpansion ? "True" : "False"}`,
  );
  if (mountOptions?.length) {
    writer.line(0, "MountOptions:");
    for (const option of mountOptions) writer.line(1, option);
  } else writer.line(0, "MountOptions:\t<none>");
  if (reclaimPolicy) writer.line(0, `ReclaimPolicy:\t${reclaimPolicy}`);
  if (volumeBindingMode) writer.line(0, `VolumeBindingMode:\t${volumeBindingMode}`);
}

export function describeEndpointSlice(
  writer: DescribeWriter,
  { metadata, addressType, ports, endpoints }: EndpointSlice,
): void {
  writer.line(0, `Name:\t${metadata.name}`);
  writer.line(0, `Namespace:\t${metadata.namespace}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
  writer.line(0, `AddressType:\t${addressType}`);
  if (!ports?.length) writer.line(0, "Ports: <unset>");
  else {
    writer.line(0, "Ports:");
    writer.line(1, "Name\tPort\tProtocol");
    writer.line(1, "----\t----\t--------");
    for (const { name, port, protocol } of ports)
      writer.line(1, `${name || "<unset>"}\t${port ?? "<unset>"}\t${protocol}`);
  }
  if (!endpoints?.length) {
    writer.line(0, "Endpoints: <none>");
    return;
  }
  writer.line(0, "Endpoints:");
  for (const { addresses, conditions, hostname, targetRef, nodeName, zone } of endpoints) {
    writer.line(1, `- Addresses:\t${addresses.join(",") || "<none>"}`);
    writer.line(1, "  Conditions:");
    writer.line(2, `  Ready:\t${conditions?.ready ?? "<unset>"}`);
    writer.line(1, `  Hostname:\t${hostname ?? "<unset>"}`);
    if (targetRef) writer.line(1, `  TargetRef:\t${targetRef.kind}/${targetRef.name}`);
    writer.line(1, `  NodeName:\t${nodeName ?? "<unset>"}`);
    writer.line(1, `  Zone:\t${zone ?? "<unset>"}`);
  }
}
