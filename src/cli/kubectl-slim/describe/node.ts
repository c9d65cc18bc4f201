import { addQuantity, type Node, type Pod, podLimits, podRequests, quantityMilliValue } from "#kinds";
import { annotationLines, type DescribeWriter, longTime, pairsLines, since } from "./writer.ts";

export interface NodeAround {
  readonly pods: readonly Pod[];
  readonly lease:
    | {
        readonly spec?: {
          readonly holderIdentity?: string;
          readonly acquireTime?: string;
          readonly renewTime?: string;
        };
      }
    | undefined;
}

const ROLE = "node-role.kubernetes.io/";

export function describeNode(
  writer: DescribeWriter,
  { metadata, spec, status = {} }: Node,
  { pods, lease }: NodeAround,
): void {
  writer.line(0, `Name:\t${metadata.name}`);
  const roles = Object.keys(metadata.labels ?? {})
    .filter((key) => key.startsWith(ROLE) && key !== ROLE)
    .map((key) => key.slice(ROLE.length))
    .sort();
  writer.line(0, `Roles:\t${roles.join(",") || "<none>"}`);
  writer.add(pairsLines("Labels", metadata.labels));
  writer.add(annotationLines(metadata.annotations));
  writer.line(0, `CreationTimestamp:\t${longTime(metadata.creationTimestamp)}`);
  const taints = (spec?.taints ?? [])
    .map(({ key, value, effect }) => `${key}${value ? `=${value}` : ""}:${effect}`)
    .sort();
  if (taints.length === 0) writer.line(0, "Taints:\t<none>");
  else
    taints.forEach((taint, i) => {
      writer.line(0, `${i === 0 ? "Taints:" : ""}\t${taint}`);
    });
  writer.line(0, `Unschedulable:\t${spec?.unschedulable ?? false}`);
  writer.line(0, "Lease:");
  writer.line(1, `HolderIdentity:\t${lease?.spec?.holderIdentity ?? "<unset>"}`);
  writer.line(1, `AcquireTime:\t${longTime(lease?.spec?.acquireTime)}`);
  writer.line(1, `RenewTime:\t${longTime(lease?.spec?.renewTime)}`);
  if (status.conditions?.length) {
    writer.line(0, "Conditions:");
    writer.line(1, "Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage");
    writer.line(1, "----\t------\t-----------------\t------------------\t------\t-------");
    for (const { type, status: value, lastHeartbeatTime, lastTransitionTime, reason, message } of status.conditions)
      writer.line(
        1,
        `${type} \t${value} \t${longTime(lastHeartbeatTime)} \t${longTime(lastTransitionTime)} \t${reason ?? ""} \t${message ?? ""}`,
      );
  }
  writer.line(0, "Addresses:");
  for (const { type, address } of status.addresses ?? []) writer.line(1, `${type}:\t${address}`);
  for (const [title, amounts] of [
    ["Capacity", status.capacity],
    ["Allocatable", status.allocatable],
  ] as const) {
    writer.line(0, `${title}:`);
    for (const name of Object.keys(amounts ?? {}).sort()) writer.line(1, `${name}:\t${amounts![name]}`);
  }
  const info = status.nodeInfo;
  writer.line(0, "System Info:");
  writer.line(0, `  Machine ID:\t${info?.machineID ?? ""}`);
  writer.line(0, `  System UUID:\t${info?.systemUUID ?? ""}`);
  writer.line(0, `  Boot ID:\t${info?.bootID ?? ""}`);
  writer.line(0, `  Kernel Version:\t${info?.kernelVersion ?? ""}`);
  writer.line(0, `  OS Image:\t${info?.osImage ?? ""}`);
  writer.line(0, `  Operating System:\t${info?.operatingSystem ?? ""}`);
  writer.line(0, `  Architecture:\t${info?.architecture ?? ""}`);
  writer.line(0, `  Container Runtime Version:\t${info?.containerRuntimeVersion ?? ""}`);
  writer.line(0, `  Kubelet Version:\t${info?.kubeletVersion ?? ""}`);
  writer.line(0, `  Kube-Proxy Version:\t${info?.kubeProxyVersion ?? ""}`);
  if (spec?.podCIDR) writer.line(0, `PodCIDR:\t${spec.podCIDR}`);
  if (spec?.podCIDRs?.length) writer.line(0, `PodCIDRs:\t${spec.podCIDRs.join(",")}`);
  if (spec?.providerID) writer.line(0, `ProviderID:\t${spec.providerID}`);
  writeNodePods(writer, pods, status.allocatable ?? {});
}

type Amounts = Readonly<Record<string, string | number>>;

function writeNodePods(writer: DescribeWriter, pods: readonly Pod[], allocatable: Amounts): void {
  const active = pods.filter(({ status }) => status?.phase !== "Succeeded" && status?.phase !== "Failed");
  writer.line(0, `Non-terminated Pods:\t(${active.length} in total)`);
  writer.line(1, "Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge");
  writer.line(1, "---------\t----\t\t------------\t----------\t---------------\t-------------\t---");
  const percent = (amount: string, name: string) => {
    const whole = milli(String(allocatable[name] ?? "0"));
    return whole === 0 ? 0 : Math.trunc((milli(amount) / whole) * 100);
  };
  const cell = (amount: string, name: string) => `${amount} (${percent(amount, name)}%)`;
  const requests = new Map<string, string>();
  const limits = new Map<string, string>();
  for (const pod of active) {
    const [asks, most] = [amountsOf(podRequests(pod)), amountsOf(podLimits(pod))];
    for (const [into, from] of [
      [requests, asks],
      [limits, most],
    ] as const)
      for (const [name, amount] of Object.entries(from))
        into.set(name, String(into.has(name) ? sum(into.get(name)!, amount) : amount));
    const of = (from: Record<string, string>, name: string) => cell(from[name] ?? "0", name);
    writer.line(
      1,
      `${pod.metadata.namespace}\t${pod.metadata.name}\t\t${of(asks, "cpu")}\t${of(most, "cpu")}\t${of(asks, "memory")}\t${of(most, "memory")}\t${since(pod.metadata.creationTimestamp, writer.now)}`,
    );
  }
  writer.line(0, "Allocated resources:");
  writer.line(1, "(Total limits may be over 100 percent, i.e., overcommitted.)");
  writer.line(1, "Resource\tRequests\tLimits");
  writer.line(1, "--------\t--------\t------");
  const others = Object.keys(allocatable)
    .filter((one) => !KNOWN.has(one))
    .sort();
  const huge = others.filter((name) => name.startsWith("hugepages-"));
  for (const name of ["cpu", "memory", "ephemeral-storage", ...huge])
    writer.line(1, `${name}\t${cell(requests.get(name) ?? "0", name)}\t${cell(limits.get(name) ?? "0", name)}`);
  for (const name of others.filter((one) => !huge.includes(one)))
    writer.line(1, `${name}\t${requests.get(name) ?? "0"}\t${limits.get(name) ?? "0"}`);
}

const KNOWN = new Set(["cpu", "memory", "ephemeral-storage", "pods"]);

const milli = (text: string) => quantityMilliValue(text);
const amountsOf = (list: object): Record<string, string> =>
  Object.fromEntries(Object.entries(list).map(([name, amount]) => [name, String(amount)]));
const sum = (a: string, b: string) => addQuantity(a, b);
