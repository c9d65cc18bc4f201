import { controllerOf, type Pod } from "#kinds";
import { writeContainers } from "./containers.ts";
import { tolerationLines, writeTopology } from "./pod-template.ts";
import { writeVolumes } from "./volumes.ts";
import { annotationLines, type DescribeWriter, longTime, pairsLines, since } from "./writer.ts";

export function describePod(writer: DescribeWriter, pod: Pod): void {
  const { metadata, spec, status = {} } = pod;
  writer.line(0, `Name:\t${metadata.name}`);
  writer.line(0, `Namespace:\t${metadata.namespace}`);
  if (spec.priority !== undefined) writer.line(0, `Priority:\t${spec.priority}`);
  if (spec.priorityClassName) writer.line(0, `Priority Class Name:\t${spec.priorityClassName}`);
  if (spec.runtimeClassName) writer.line(0, `Runtime Class Name:\t${spec.runtimeClassName}`);
  if (spec.serviceAccountName) writer.line(0, `Service Account:\t${spec.serviceAccountName}`);
  writer.line(0, `Node:\t${spec.nodeName ? `${spec.nodeName}/${status.hostIP ?? ""}` : "<none>"}`);
  if (status.startTime) writer.line(0, `Start Time:\t${longTime(status.startTime)}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
  if (metadata.deletionTimestamp && status.phase !== "Failed" && status.phase !== "Succeeded") {
    writer.line(0, `Status:\tTerminating (lasts ${since(metadata.deletionTimestamp, writer.now)})`);
    writer.line(0, `Termination Grace Period:\t${metadata.deletionGracePeriodSeconds}s`);
  } else writer.line(0, `Status:\t${status.phase}`);
  if (status.reason) writer.line(0, `Reason:\t${status.reason}`);
  if (status.message) writer.line(0, `Message:\t${status.message}`);
  const seccomp = spec.securityContext?.seccompProfile;
  if (seccomp) {
    writer.line(0, `SeccompProfile:\t${seccomp.type}`);
    if (seccomp.type === "Localhost") writer.line(1, `LocalhostProfile:\t${seccomp.localhostProfile}`);
  }
  writer.line(0, `IP:\t${status.podIP ?? ""}`);
  if (!status.podIPs?.length) writer.line(0, "IPs:\t<none>");
  else {
    writer.line(0, "IPs:");
    for (const { ip } of status.podIPs) writer.line(1, `IP:\t${ip}`);
  }
  const owner = controllerOf(pod as never);
  if (owner) writer.line(0, `Controlled By:\t${owner.kind}/${owner.name}`);
  if (status.nominatedNodeName) writer.line(0, `NominatedNodeName:\t${status.nominatedNodeName}`);
  if (spec.initContainers?.length)
    writeContainers(writer, "Init Containers", spec.initContainers, status.initContainerStatuses ?? [], "", pod);
  writeContainers(writer, "Containers", spec.containers, status.containerStatuses ?? [], "", pod);
  if (spec.ephemeralContainers?.length)
    writeContainers(
      writer,
      "Ephemeral Containers",
      spec.ephemeralContainers as never,
      status.ephemeralContainerStatuses ?? [],
      "",
    );
  if (spec.readinessGates?.length) {
    writer.line(0, "Readiness Gates:");
    writer.line(1, "Type\tStatus");
    for (const { conditionType } of spec.readinessGates) {
      const found = status.conditions?.find(({ type }) => type === conditionType);
      writer.line(1, `${conditionType} \t${found?.status ?? "<none>"} `);
    }
  }
  if (status.conditions?.length) {
    writer.line(0, "Conditions:");
    writer.line(1, "Type\tStatus");
    for (const { type, status: value } of status.conditions) writer.line(1, `${type} \t${value} `);
  }
  writeVolumes(writer, spec.volumes ?? [], "");
  if (status.qosClass) writer.line(0, `QoS Class:\t${status.qosClass}`);
  writer.add(pairsLines("Node-Selectors", spec.nodeSelector));
  writer.add(tolerationLines(spec.tolerations));
  writeTopology(writer, spec.topologySpreadConstraints, "");
}
