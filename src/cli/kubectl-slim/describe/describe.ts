import type { ServedResource } from "#client";
import { type ApiObject, formatSelector, isStatus, type Pod, type ReplicaSet, resources } from "#kinds";
import type { Context } from "../context.ts";
import * as core from "./core.ts";
import { describeNode } from "./node.ts";
import * as others from "./others.ts";
import * as rbac from "./rbac.ts";
import { describePod } from "./pod.ts";
import * as workloads from "./workloads.ts";
import { DescribeWriter, type EventLike, writeEvents } from "./writer.ts";

/** The text of `kubectl describe` for one object. */
export async function describeObject(
  context: Context,
  resource: ServedResource,
  object: ApiObject,
  options: { events: boolean },
): Promise<string> {
  const writer = new DescribeWriter(context.environment.now());
  const rule = RULES[`${resource.kind}.${resource.group}`];
  if (rule) await rule(context, writer, object);
  else
    core.describeAny(writer, {
      ...object,
      apiVersion: resource.group ? `${resource.group}/${resource.version}` : resource.version,
      kind: resource.kind,
    });
  if (options.events && !WITHOUT_EVENTS.has(resource.kind))
    writeEvents(writer, await eventsAbout(context, object, resource.kind));
  return writer.toString();
}

const WITHOUT_EVENTS = new Set(["Secret", "Namespace", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"]);

type Rule = (context: Context, writer: DescribeWriter, object: ApiObject) => Promise<void> | void;

const plain =
  <T>(describe: (writer: DescribeWriter, object: T) => void): Rule =>
  (_context, writer, object) =>
    describe(writer, object as T);

const workload =
  <T>(describe: (writer: DescribeWriter, object: T, around: workloads.Around) => void): Rule =>
  async (context, writer, object) => {
    const { namespace } = object.metadata;
    const selector = (object.spec as { selector?: Parameters<typeof formatSelector>[0] } | undefined)?.selector;
    const labelSelector = selector ? formatSelector(selector) : "";
    const [pods, replicaSets] = await Promise.all([
      context.client.list(resources.pods, { namespace, labelSelector }),
      object.kind === "Deployment"
        ? context.client.list(resources.replicaSets, { namespace, labelSelector })
        : { items: [] },
    ]);
    describe(writer, object as T, {
      pods: pods.items as readonly Pod[],
      replicaSets: replicaSets.items as readonly ReplicaSet[],
    });
  };

const RULES: Readonly<Record<string, Rule>> = {
  "Pod.": plain(describePod),
  "ConfigMap.": plain(core.describeConfigMap),
  "Secret.": plain(core.describeSecret),
  "PriorityClass.scheduling.k8s.io": plain(others.describePriorityClass),
  "StorageClass.storage.k8s.io": plain(others.describeStorageClass),
  "EndpointSlice.discovery.k8s.io": plain(others.describeEndpointSlice),
  "Role.rbac.authorization.k8s.io": plain(rbac.describeRole),
  "ClusterRole.rbac.authorization.k8s.io": plain(rbac.describeRole),
  "RoleBinding.rbac.authorization.k8s.io": plain(rbac.describeBinding),
  "ClusterRoleBinding.rbac.authorization.k8s.io": plain(rbac.describeBinding),
  "ServiceAccount.": plain(core.describeServiceAccount),
  "Deployment.apps": workload(workloads.describeDeployment),
  "ReplicaSet.apps": workload(workloads.describeReplicaSet),
  "StatefulSet.apps": workload(workloads.describeStatefulSet),
  "DaemonSet.apps": workload(workloads.describeDaemonSet),
  "Job.batch": plain(workloads.describeJob),
  "CronJob.batch": plain(workloads.describeCronJob),
  async "Service."({ client }, writer, object) {
    const labelSelector = `kubernetes.io/service-name=${object.metadata.name}`;
    const { items } = await client.list(resources.endpointSlices, {
      namespace: object.metadata.namespace,
      labelSelector,
    });
    core.describeService(writer, object as never, items as never);
  },
  async "PersistentVolumeClaim."({ client }, writer, object) {
    const { items } = await client.list(resources.pods, { namespace: object.metadata.namespace });
    core.describeClaim(writer, object as never, items as never);
  },
  async "Namespace."({ client }, writer, object) {
    const namespace = object.metadata.name;
    const [quotas, limits] = await Promise.all([
      client.list(resources.resourceQuotas, { namespace }),
      client.list(resources.limitRanges, { namespace }),
    ]);
    core.describeNamespace(writer, object as never, quotas.items as never, limits.items);
  },
  async "Node."({ client }, writer, object) {
    const { name } = object.metadata;
    const [pods, lease] = await Promise.all([
      client.list(resources.pods, { fieldSelector: `spec.nodeName=${name}` }),
      client.get(resources.leases, name, { namespace: "kube-node-lease" }).catch((error: unknown) => {
        if (isStatus(error, "NotFound", "Forbidden")) return undefined;
        throw error;
      }),
    ]);
    describeNode(writer, object as never, { pods: pods.items as readonly Pod[], lease: lease as never });
  },
  async "Ingress.networking.k8s.io"(context, writer, object) {
    core.describeIngress(writer, object as never, await backends(context, object));
  },
};

/** What stands behind a service of an ingress: `10.0.0.1:8080`, or why there is nothing. */
async function backends(
  { client }: Context,
  ingress: ApiObject,
): Promise<(name: string, port: number | string) => string> {
  const { namespace } = ingress.metadata;
  const [services, slices] = await Promise.all([
    client.list(resources.services, { namespace }),
    client.list(resources.endpointSlices, { namespace }),
  ]);
  return (name, port) => {
    const service = services.items.find(({ metadata }) => metadata.name === name);
    if (!service) return `<error: services ${JSON.stringify(name)} not found>`;
    const wanted = service.spec?.ports?.find((one) => one.port === port || one.name === port);
    const found = slices.items
      .filter(({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] === name)
      .flatMap(({ endpoints, ports }) => {
        const number = (ports ?? []).find((one) => (one.name ?? "") === (wanted?.name ?? ""))?.port;
        return number === undefined
          ? []
          : (endpoints ?? [])
              .filter((one) => one.conditions?.ready !== false)
              .flatMap(({ addresses }) => addresses.map((address) => `${address}:${number}`));
      });
    return found.length > 3 ? `${found.slice(0, 3).join(",")} + ${found.length - 3} more...` : found.join(",");
  };
}

async function eventsAbout({ client }: Context, { metadata }: ApiObject, kind: string): Promise<readonly EventLike[]> {
  const parts = [`involvedObject.name=${metadata.name}`, `involvedObject.kind=${kind}`];
  if (metadata.namespace) parts.push(`involvedObject.namespace=${metadata.namespace}`);
  // some of a node's events carry its name where the UID should be
  const uids = kind === "Node" ? [metadata.name, metadata.uid] : [metadata.uid];
  const lists = await Promise.all(
    uids.map((uid) =>
      client.list(resources.events, {
        namespace: metadata.namespace,
        fieldSelector: [...parts, ...(uid ? [`involvedObject.uid=${uid}`] : [])].join(","),
      }),
    ),
  );
  return lists.flatMap(({ items }) => items) as readonly EventLike[];
}
