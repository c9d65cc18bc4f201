import type { Clock, DeepReadonly, Logger, Random } from "#base";
import type { Client, Recorder } from "#client";
import type { Engine } from "#engine";
import type { ObjectReference } from "#kinds";
import type { ImageManager } from "../images/image-manager.ts";
import type { Misfit } from "../node/admission.ts";
import type { AnyContainer, ConfigBuilder, PodEvent, ReadonlyPod, VolumeManager } from "../ports.ts";
import type { Dial } from "../probes/dial.ts";
import type { ProbeManager } from "../probes/probe-manager.ts";
import type { StatusWriter } from "../status/status-writer.ts";
import type { EngineView } from "./engine-view.ts";
import type { RestartBackoff } from "./restart-backoff.ts";

/** What the workers of all pods share. */
export interface WorkerDeps {
  readonly client: Client;
  readonly engine: Engine;
  readonly view: EngineView;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly recorder: Pick<Recorder, "event">;
  readonly writer: StatusWriter;
  readonly probes: ProbeManager;
  readonly images: ImageManager;
  readonly backoff: RestartBackoff;
  readonly volumes: VolumeManager;
  readonly configs: ConfigBuilder;
  readonly dial: Dial;
  readonly hostIPs: readonly string[];
  /** Why this node does not take the pod; undefined: it does. Asked once, before anything of the pod is made. */
  admit(pod: ReadonlyPod): Promise<{ reason: string; message: string } | undefined>;
  /** Why the node does not have what a resized pod asks for; undefined: it has. */
  fits(pod: ReadonlyPod): Misfit | undefined;
  /** The handler of the pod's runtime class; absent = default. @throws Error when the class is missing */
  runtimeHandler(pod: ReadonlyPod): Promise<string | undefined>;
}

/** Records an event on the pod, or on one of its containers. */
export function recordEvent(
  deps: Pick<WorkerDeps, "recorder">,
  pod: ReadonlyPod,
  event: PodEvent,
  container?: AnyContainer,
): void {
  const { name, namespace, uid, resourceVersion } = pod.metadata ?? {};
  const reference: DeepReadonly<ObjectReference> = {
    apiVersion: "v1",
    kind: "Pod",
    ...(name ? { name } : {}),
    ...(namespace ? { namespace } : {}),
    ...(uid ? { uid } : {}),
    ...(resourceVersion ? { resourceVersion } : {}),
    ...(container ? { fieldPath: fieldPath(pod, container.name) } : {}),
  };
  deps.recorder.event(reference, event.type, event.reason, event.message);
}

function fieldPath(pod: ReadonlyPod, name: string): string {
  const { containers = [], initContainers = [] } = pod.spec ?? {};
  if (containers.some((container) => container.name === name)) return `spec.containers{${name}}`;
  if (initContainers.some((container) => container.name === name)) return `spec.initContainers{${name}}`;
  return `spec.ephemeralContainers{${name}}`;
}
