import type { Clock } from "#base";
import type { Client, Recorder } from "#client";
import { type Binding, isStatus, type Resource, resources } from "#kinds";
import { messageOf } from "#base";
import type { Refused } from "./evaluator.ts";
import type { PodInfo } from "./pod-info.ts";
import type { Candidate } from "./preemption.ts";
import type { Node, Pod } from "./types.ts";
import type { PodVolumes } from "./volumes.ts";

export interface Binder {
  /** Binds volumes, then the pod. Rejects when the pod is not bound. */
  bind(info: PodInfo, node: Node, volumes: PodVolumes | undefined, signal: AbortSignal): Promise<void>;
  /** Writes why a pod does not fit, and preempts where the decision says so. */
  refused(info: PodInfo, decision: Refused): Promise<void>;
  /** Writes that an attempt went wrong. */
  failed(info: PodInfo, error: unknown): Promise<void>;
}

export function createBinder(deps: {
  client: Client;
  clock: Clock;
  recorder: Recorder;
  schedulerName: string;
}): Binder {
  const { client, recorder } = deps;

  async function setCondition(pod: Pod, reason: string, message: string, nominatedNodeName?: string): Promise<void> {
    const before = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
    const condition = {
      type: "PodScheduled",
      status: "False",
      reason,
      message,
      lastProbeTime: null,
      lastTransitionTime: before?.status === "False" ? before.lastTransitionTime : stamp(deps.clock),
      ...(pod.metadata.generation ? { observedGeneration: pod.metadata.generation } : {}),
    };
    const body = { status: { conditions: [condition], ...(nominatedNodeName ? { nominatedNodeName } : {}) } };
    await patchStatus(pod, body);
  }
  async function patchStatus(pod: Pod, body: object): Promise<void> {
    const { namespace, name, uid } = pod.metadata;
    const patch = { type: "strategic" as const, body: { metadata: { uid }, ...body } };
    await client.patch(resources.pods, name, patch, { namespace, subresource: "status" });
  }

  async function preempt(info: PodInfo, { node, victims }: Candidate): Promise<void> {
    const condition = {
      type: "DisruptionTarget",
      status: "True",
      reason: "PreemptionByScheduler",
      message: `${deps.schedulerName}: preempting to accommodate a higher priority pod`,
      lastProbeTime: null,
      lastTransitionTime: stamp(deps.clock),
    };
    for (const { pod } of victims) {
      const { namespace, name, uid, generation } = pod.metadata;
      try {
        await patchStatus(pod, {
          status: { conditions: [{ ...condition, ...(generation ? { observedGeneration: generation } : {}) }] },
        });
        await client.delete(resources.pods, name, { namespace, ...(uid ? { preconditions: { uid } } : {}) });
      } catch (error) {
        if (isStatus(error, "NotFound", "Conflict")) continue;
        throw error;
      }
      const message = `Preempted by pod ${info.uid} on node ${node.name}`;
      recorder.event(pod, "Normal", "Preempted", message, { action: "Preempting", related: info.pod });
    }
  }

  return {
    async bind({ pod }, node, volumes, signal) {
      await volumes?.bind(node, signal);
      const { namespace, name, uid } = pod.metadata;
      const binding: Binding = {
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name, ...(namespace ? { namespace } : {}), ...(uid ? { uid } : {}) },
        target: { kind: "Node", name: node.metadata.name },
      };
      const pods = resources.pods as Resource<unknown> as Resource<Binding>;
      await client.create(pods, binding, { namespace, name, subresource: "binding" });
      const message = `Successfully assigned ${namespace}/${name} to ${node.metadata.name}`;
      recorder.event(pod, "Normal", "Scheduled", message, { action: "Binding" });
    },
    async refused(info, decision) {
      recorder.event(info.pod, "Warning", "FailedScheduling", decision.message, { action: "Scheduling" });
      await setCondition(info.pod, "Unschedulable", decision.message, decision.preempt?.node.name);
      if (decision.preempt) await preempt(info, decision.preempt);
    },
    async failed({ pod }, error) {
      recorder.event(pod, "Warning", "FailedScheduling", messageOf(error), { action: "Scheduling" });
      await setCondition(pod, "SchedulerError", messageOf(error));
    },
  };
}

const stamp = (clock: Clock): string => `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
