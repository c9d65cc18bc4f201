import {
  type Container,
  type ContainerState,
  type ContainerStatus,
  type EnvVar,
  type Pod,
  type Probe,
  quantityMilliValue,
} from "#kinds";
import { longTime } from "./writer.ts";
import type { DescribeWriter } from "./writer.ts";

/** Init or main containers, with their state where they run. `space` is what templates indent more. */
export function writeContainers(
  writer: DescribeWriter,
  label: string,
  containers: readonly Container[],
  statuses: readonly ContainerStatus[] | undefined,
  space: string,
  pod?: Pod,
): void {
  const byName = new Map(statuses?.map((status) => [status.name, status]));
  if (containers.length === 0) writer.add(`${space}${label}: <none>\n`);
  else writer.add(`${space}${label}:\n`);
  for (const container of containers) {
    const status = byName.get(container.name);
    writer.line(1, `${space ? " " : ""}${container.name}:`);
    if (status) writer.line(2, `Container ID:\t${status.containerID ?? ""}`);
    writer.line(2, `Image:\t${container.image ?? ""}`);
    if (status) writer.line(2, `Image ID:\t${status.imageID}`);
    writePorts(writer, container);
    if (container.securityContext?.seccompProfile) {
      const { type, localhostProfile } = container.securityContext.seccompProfile;
      writer.line(2, `SeccompProfile:\t${type}`);
      if (type === "Localhost") writer.line(3, `LocalhostProfile:\t${localhostProfile}`);
    }
    writeWords(writer, "Command", container.command);
    writeWords(writer, "Args", container.args);
    if (status) writeStatus(writer, status);
    writeResources(writer, container);
    writeProbes(writer, container);
    writeEnvFrom(writer, container);
    writeEnv(writer, container, pod);
    writeMounts(writer, container);
  }
}

function writePorts(writer: DescribeWriter, { ports = [] }: Container): void {
  const named = (text: string, name: string | undefined) => (name ? `${text} (${name})` : text);
  const container = ports
    .map(({ containerPort, protocol = "TCP", name }) => named(`${containerPort}/${protocol}`, name))
    .join(", ");
  const host = ports
    .map(({ hostPort = 0, protocol = "TCP", name }) => named(`${hostPort}/${protocol}`, name))
    .join(", ");
  writer.line(2, `${container.includes(",") ? "Ports" : "Port"}:\t${container || "<none>"}`);
  writer.line(2, `${host.includes(",") ? "Host Ports" : "Host Port"}:\t${host || "<none>"}`);
}

function writeWords(writer: DescribeWriter, title: string, words: readonly string[] | undefined): void {
  if (!words?.length) return;
  writer.line(2, `${title}:`);
  for (const word of words) for (const line of word.split("\n")) writer.line(3, line);
}

function writeStatus(writer: DescribeWriter, status: ContainerStatus): void {
  writeState(writer, "State", status.state);
  if (status.lastState?.terminated) writeState(writer, "Last State", status.lastState);
  writer.line(2, `Ready:\t${status.ready ? "True" : "False"}`);
  writer.line(2, `Restart Count:\t${status.restartCount}`);
}

function writeState(writer: DescribeWriter, title: string, state: ContainerState | undefined): void {
  if (state?.running) {
    writer.line(2, `${title}:\tRunning`);
    writer.line(3, `Started:\t${longTime(state.running.startedAt)}`);
  } else if (state?.terminated) {
    const { reason, message, exitCode, signal, startedAt, finishedAt } = state.terminated;
    writer.line(2, `${title}:\tTerminated`);
    if (reason) writer.line(3, `Reason:\t${reason}`);
    if (message) writer.line(3, `Message:\t${message}`);
    writer.line(3, `Exit Code:\t${exitCode}`);
    if (signal) writer.line(3, `Signal:\t${signal}`);
    writer.line(3, `Started:\t${longTime(startedAt ?? "0001-01-01T00:00:00Z")}`);
    writer.line(3, `Finished:\t${longTime(finishedAt ?? "0001-01-01T00:00:00Z")}`);
  } else {
    writer.line(2, `${title}:\tWaiting`);
    if (state?.waiting?.reason) writer.line(3, `Reason:\t${state.waiting.reason}`);
  }
}

function writeResources(writer: DescribeWriter, { resources = {} }: Container): void {
  for (const [title, amounts] of [
    ["Limits", resources.limits],
    ["Requests", resources.requests],
  ] as const) {
    const names = Object.keys(amounts ?? {}).sort();
    if (names.length === 0) continue;
    writer.line(2, `${title}:`);
    for (const name of names) writer.line(3, `${name}:\t${amounts![name]}`);
  }
}

function writeProbes(writer: DescribeWriter, { livenessProbe, readinessProbe, startupProbe }: Container): void {
  if (livenessProbe) writer.line(2, `Liveness:\t${probeText(livenessProbe)}`);
  if (readinessProbe) writer.line(2, `Readiness:\t${probeText(readinessProbe)}`);
  if (startupProbe) writer.line(2, `Startup:\t${probeText(startupProbe)}`);
}

export function probeText(probe: Probe): string {
  const attributes = `delay=${probe.initialDelaySeconds ?? 0}s timeout=${probe.timeoutSeconds ?? 0}s period=${probe.periodSeconds ?? 0}s #success=${probe.successThreshold ?? 0} #failure=${probe.failureThreshold ?? 0}`;
  if (probe.exec) return `exec [${(probe.exec.command ?? []).join(" ")}] ${attributes}`;
  if (probe.httpGet) {
    const { scheme = "", host = "", port, path = "" } = probe.httpGet;
    return `http-get ${scheme.toLowerCase()}://${host}:${port}${path.startsWith("/") || path === "" ? path : `/${path}`} ${attributes}`;
  }
  if (probe.tcpSocket) return `tcp-socket ${probe.tcpSocket.host ?? ""}:${probe.tcpSocket.port} ${attributes}`;
  if (probe.grpc) return `grpc <pod>:${probe.grpc.port} ${probe.grpc.service ?? ""} ${attributes}`;
  return `unknown ${attributes}`;
}

function writeEnvFrom(writer: DescribeWriter, { envFrom = [] }: Container): void {
  if (envFrom.length === 0) return;
  writer.line(2, "Environment Variables from:");
  for (const { configMapRef, secretRef, prefix } of envFrom) {
    const [from, ref] = configMapRef ? ["ConfigMap", configMapRef] : ["Secret", secretRef];
    const tail = prefix ? ` with prefix '${prefix}'` : "";
    writer.line(3, `${ref?.name}\t${from}${tail}\tOptional: ${ref?.optional ?? false}`);
  }
}

function writeEnv(writer: DescribeWriter, container: Container, pod: Pod | undefined): void {
  const { env = [] } = container;
  if (env.length === 0) {
    writer.line(2, "Environment:\t<none>");
    return;
  }
  writer.line(2, "Environment:");
  for (const variable of env) writeVariable(writer, variable, container, pod);
}

function writeVariable(
  writer: DescribeWriter,
  { name, value = "", valueFrom }: EnvVar,
  container: Container,
  pod: Pod | undefined,
): void {
  if (!valueFrom) {
    value.split("\n").forEach((line, i) => {
      writer.line(3, i === 0 ? `${name}:\t${line}` : `\t${line}`);
    });
    return;
  }
  const { fieldRef, resourceFieldRef, secretKeyRef, configMapKeyRef } = valueFrom;
  const optional = (ref: { optional?: boolean }) => `\tOptional: ${ref.optional ?? false}`;
  if (fieldRef)
    writer.line(
      3,
      `${name}:\t${pod ? fieldValue(pod, fieldRef.fieldPath) : ""} (${fieldRef.apiVersion ?? "v1"}:${fieldRef.fieldPath})`,
    );
  else if (resourceFieldRef)
    writer.line(3, `${name}:\t${resourceValue(container, resourceFieldRef)} (${resourceFieldRef.resource})`);
  else if (secretKeyRef)
    writer.line(
      3,
      `${name}:\t<set to the key '${secretKeyRef.key}' in secret '${secretKeyRef.name}'>${optional(secretKeyRef)}`,
    );
  else if (configMapKeyRef)
    writer.line(
      3,
      `${name}:\t<set to the key '${configMapKeyRef.key}' of config map '${configMapKeyRef.name}'>${optional(configMapKeyRef)}`,
    );
}

/** What the downward API would give, as far as the object's own metadata tells. */
function fieldValue({ metadata }: Pod, path: string): string {
  const keyed = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path);
  if (keyed) return metadata[keyed[1] as "labels" | "annotations"]?.[keyed[2]!] ?? "";
  const values: Readonly<Record<string, string | undefined>> = {
    "metadata.name": metadata.name,
    "metadata.namespace": metadata.namespace,
    "metadata.uid": metadata.uid,
  };
  return values[path] ?? "";
}

/** Rounded up to whole cores, or whole units of the divisor. */
function resourceValue(
  { resources = {} }: Container,
  { resource, divisor }: { resource: string; divisor?: string | number | undefined },
): string {
  const [kind, name = ""] = resource.split(".", 2);
  const amount = (kind === "limits" ? resources.limits : resources.requests)?.[name];
  if (amount === undefined) return "0";
  const unit = quantityMilliValue(String(divisor ?? "0")) || 1000;
  return String(Math.ceil(quantityMilliValue(String(amount)) / unit));
}

function writeMounts(writer: DescribeWriter, { volumeMounts = [], volumeDevices = [] }: Container): void {
  if (volumeMounts.length === 0) writer.line(2, "Mounts:\t<none>");
  else writer.line(2, "Mounts:");
  for (const mount of [...volumeMounts].sort((a, b) => (a.mountPath < b.mountPath ? -1 : 1))) {
    const options = [mount.readOnly ? "ro" : "rw", ...(mount.subPath ? [`path=${JSON.stringify(mount.subPath)}`] : [])];
    writer.line(3, `${mount.mountPath} from ${mount.name} (${options.join(",")})`);
  }
  if (volumeDevices.length === 0) return;
  writer.line(2, "Devices:");
  for (const { devicePath, name } of [...volumeDevices].sort((a, b) => (a.devicePath < b.devicePath ? -1 : 1)))
    writer.line(3, `${devicePath} from ${name}`);
}
