import { deepClone } from "#base";
import { type ApiObject, conflict, invalid, type Pod, type Status } from "#kinds";
import { timeOf } from "../verbs/create.ts";
import type { Call } from "../pipeline/call.ts";
import { updateObject } from "../verbs/update.ts";

interface Binding extends ApiObject {
  target?: { kind?: string; name?: string };
}

/** `pods/binding` and the older `bindings`: puts a pod on a node, once. @throws StatusError 409, 422 */
export async function bindPod(call: Call, binding: ApiObject): Promise<Status> {
  const { target, metadata } = binding as Binding;
  const node = target?.name ?? "";
  const errors = [];
  if (!["", "Node"].includes(target?.kind ?? ""))
    errors.push({
      field: "target.kind",
      reason: "FieldValueNotSupported",
      message: `Unsupported value: "${target?.kind}": supported values: "Node", "<empty>"`,
    } as const);
  if (!node) errors.push({ field: "target.name", reason: "FieldValueRequired", message: "Required value" } as const);
  if (errors.length > 0) throw invalid({ group: "", kind: "Binding" }, call.info.name, errors);
  await updateObject(call, {
    internal: true,
    change(current) {
      const pod = deepClone<Pod>(current as unknown as Pod);
      if (pod.metadata.deletionTimestamp) throw refused(call, "pod is being deleted, cannot be assigned to a host");
      if (pod.spec!.nodeName)
        throw refused(call, `pod ${pod.metadata.name} is already assigned to node "${pod.spec!.nodeName}"`);
      if ((pod.spec!.schedulingGates?.length ?? 0) > 0) throw refused(call, "pod has non-empty .spec.schedulingGates");
      pod.spec!.nodeName = node;
      const { annotations, labels } = metadata ?? {};
      if (annotations) pod.metadata.annotations = { ...pod.metadata.annotations, ...annotations };
      if (labels) pod.metadata.labels = { ...pod.metadata.labels, ...labels };
      pod.status = { ...pod.status, conditions: scheduled(pod, timeOf(call.server.clock.now())) };
      return pod as unknown as ApiObject;
    },
    ...(metadata?.uid ? { uid: metadata.uid } : {}),
    ...(metadata?.resourceVersion ? { resourceVersion: metadata.resourceVersion } : {}),
  });
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
}

function scheduled(pod: Pod, now: string) {
  const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== "PodScheduled");
  const observedGeneration = pod.metadata.generation;
  return [
    ...others,
    {
      type: "PodScheduled",
      status: "True",
      lastProbeTime: null as never,
      lastTransitionTime: now,
      ...(observedGeneration === undefined ? {} : { observedGeneration }),
    },
  ];
}

function refused({ info }: Call, why: string): Error {
  return conflict({ group: "", resource: "pods/binding" }, info.name, why);
}
