import type { ServedResource } from "#client";
import { type ApiObject, formatSelector, type Pod, resources } from "#kinds";
import type { Context } from "./context.ts";
import { CommandError } from "./errors.ts";
import { resourcesOf } from "./resource-args.ts";

export interface Found {
  readonly pod: Pod;
  readonly namespace: string;
}

/** `web`, `pod/web`, `deployment/web`: the object, and the pods that it stands for. */
export async function podsFor(
  context: Context,
  word: string,
): Promise<{ resource: ServedResource; pods: readonly Pod[]; object: ApiObject }> {
  const { client, namespace } = context;
  const [kind, name] = word.includes("/") ? (word.split("/", 2) as [string, string]) : ["pods", word];
  const [resource] = await resourcesOf(context, kind);
  const object = (await client.get(resource!, name, { namespace })) as ApiObject;
  if (resource!.resource === "pods") return { resource: resource!, pods: [object as unknown as Pod], object };
  const selector = (object.spec as { selector?: Record<string, unknown> } | undefined)?.selector;
  if (!selector) throw new CommandError(`selector is not supported for ${resource!.kind}`);
  const labelSelector =
    resource!.resource === "services" || resource!.resource === "replicationcontrollers"
      ? Object.entries(selector)
          .map(([key, value]) => `${key}=${String(value)}`)
          .join(",")
      : formatSelector(selector as never);
  const { items } = await client.list(resources.pods, { namespace, labelSelector });
  return { resource: resource!, pods: [...(items as readonly Pod[])].sort(byActivity), object };
}

/** As kubectl chooses: those that run and are ready first, among them those that have been so for longer, then the older ones. */
function byActivity(a: Pod, b: Pod): number {
  return rank(b) - rank(a) || readySince(a).localeCompare(readySince(b)) || created(a).localeCompare(created(b));
}

function rank(pod: Pod): number {
  const phase = { Running: 2, Unknown: 1 }[pod.status?.phase ?? ""] ?? 0;
  return (pod.spec.nodeName ? 8 : 0) + phase * 2 + (readyCondition(pod) ? 1 : 0);
}

const readyCondition = ({ status }: Pod) =>
  status?.conditions?.find(({ type, status: value }) => type === "Ready" && value === "True");
const readySince = (pod: Pod) => String(readyCondition(pod)?.lastTransitionTime ?? "");
const created = ({ metadata }: Pod) => String(metadata.creationTimestamp ?? "");

/** The pod to use; waits a while for one to be there. @throws CommandError */
export async function onePodFor(context: Context, word: string, timeoutMs: number): Promise<Pod> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const { pods } = await podsFor(context, word);
    if (pods[0]) return pods[0];
    if (performance.now() > end) throw new CommandError("timed out waiting for the condition");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container";

/** The container that is meant when none is named; which it is is told when there are several. @throws CommandError */
export function defaultContainer({ err }: Pick<Context, "err">, pod: Pod, options: { quiet?: boolean } = {}): string {
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  const named = pod.metadata.annotations?.[DEFAULT_CONTAINER];
  if (named && containers.some(({ name }) => name === named)) return named;
  const [first] = containers;
  if (!first) throw new CommandError(`no container found for pod ${pod.metadata.name}`);
  const all = [
    ...containers.map(({ name }) => name),
    ...initContainers.map(({ name }) => `${name} (init)`),
    ...ephemeralContainers.map(({ name }) => `${name} (ephem)`),
  ];
  if (all.length > 1 && !options.quiet)
    err(`Defaulted container ${JSON.stringify(first.name)} out of: ${all.join(", ")}\n`);
  return first.name;
}
