import { deepEqual, type DeepReadonly } from "#base";
import type { Reader } from "#apiserver";
import type { Client } from "#client";
import {
  type FlowSchema,
  type FlowSchemaSpec,
  isStatus,
  type PriorityLevelConfiguration,
  type PriorityLevelConfigurationSpec,
  type Resource,
  resources,
} from "#kinds";

const API = "flowcontrol.apiserver.k8s.io/v1";
/** An object with this annotation at "true" is brought back to its spec at every start. */
const AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec";

type Rules = NonNullable<FlowSchemaSpec["rules"]>[number];

/**
 * Makes the flow schemas and priority levels that every cluster has, and restores the specs of those that are to be kept.
 * @see https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#defaults
 */
export async function reconcileFlowControl(client: Client, reader: Reader, now: number): Promise<void> {
  await Promise.all(
    Object.entries(LEVELS).map(([name, spec]) =>
      reconcile(resources.priorityLevelConfigurations, {
        apiVersion: API,
        kind: "PriorityLevelConfiguration",
        metadata: { name, annotations: { [AUTOUPDATE]: "true" } },
        spec,
      }),
    ),
  );
  await Promise.all(
    Object.entries(SCHEMAS).map(async ([name, spec]) => {
      const schema: FlowSchema = {
        apiVersion: API,
        kind: "FlowSchema",
        metadata: { name, annotations: { [AUTOUPDATE]: "true" } },
        spec,
      };
      if (await reconcile(resources.flowSchemas, schema)) await tellFound(schema);
    }),
  );

  /** True when the object was not there before. */
  async function reconcile<T extends FlowSchema | PriorityLevelConfiguration>(
    resource: Resource<T>,
    wanted: T,
  ): Promise<boolean> {
    const { name } = wanted.metadata;
    const found = reader.get(resource, undefined, name) as DeepReadonly<T> | undefined;
    if (!found) {
      try {
        await client.create(resource, wanted);
        return true;
      } catch (error) {
        if (!isStatus(error, "AlreadyExists")) throw error;
        return false;
      }
    }
    if (found.metadata.annotations?.[AUTOUPDATE] === "true" && !deepEqual(found.spec, wanted.spec))
      await client.update(resource, { ...found, spec: wanted.spec } as T);
    return false;
  }

  async function tellFound({ metadata, spec }: FlowSchema): Promise<void> {
    const level = JSON.stringify(spec?.priorityLevelConfiguration.name);
    const condition = {
      type: "Dangling",
      status: "False",
      lastTransitionTime: `${new Date(now).toISOString().slice(0, 19)}Z`,
      reason: "Found",
      message: `This FlowSchema references the PriorityLevelConfiguration object named ${level} and it exists`,
    };
    const body = { status: { conditions: [condition] } };
    await client.patch(resources.flowSchemas, metadata.name, { type: "merge", body }, { subresource: "status" });
  }
}

function queued(
  nominalConcurrencyShares: number,
  lendablePercent: number,
  queues: number,
  handSize: number,
): PriorityLevelConfigurationSpec {
  const queuing = { handSize, queueLengthLimit: 50, queues };
  return {
    type: "Limited",
    limited: { nominalConcurrencyShares, lendablePercent, limitResponse: { type: "Queue", queuing } },
  };
}

const LEVELS: Readonly<Record<string, PriorityLevelConfigurationSpec>> = {
  "catch-all": {
    type: "Limited",
    limited: { nominalConcurrencyShares: 5, lendablePercent: 0, limitResponse: { type: "Reject" } },
  },
  exempt: { type: "Exempt", exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } },
  "global-default": queued(20, 50, 128, 6),
  "leader-election": queued(10, 0, 16, 4),
  "node-high": queued(40, 25, 64, 6),
  system: queued(30, 33, 64, 6),
  "workload-high": queued(40, 50, 128, 6),
  "workload-low": queued(100, 90, 128, 6),
};

const group = (name: string) => ({ kind: "Group", group: { name } });
const user = (name: string) => ({ kind: "User", user: { name } });
const SYSTEM_ACCOUNTS = { kind: "ServiceAccount", serviceAccount: { name: "*", namespace: "kube-system" } };
const EVERYBODY = [group("system:unauthenticated"), group("system:authenticated")];

const everything = (...subjects: Rules["subjects"]): Rules => ({
  subjects,
  nonResourceRules: [{ nonResourceURLs: ["*"], verbs: ["*"] }],
  resourceRules: [{ apiGroups: ["*"], clusterScope: true, namespaces: ["*"], resources: ["*"], verbs: ["*"] }],
});

function schema(
  priorityLevel: string,
  matchingPrecedence: number,
  distinguisher: "ByUser" | "ByNamespace" | undefined,
  ...rules: Rules[]
): FlowSchemaSpec {
  return {
    ...(distinguisher ? { distinguisherMethod: { type: distinguisher } } : {}),
    matchingPrecedence,
    priorityLevelConfiguration: { name: priorityLevel },
    rules,
  };
}

const SCHEMAS: Readonly<Record<string, FlowSchemaSpec>> = {
  "catch-all": schema("catch-all", 10_000, "ByUser", everything(...EVERYBODY)),
  exempt: schema("exempt", 1, undefined, everything(group("system:masters"))),
  "global-default": schema("global-default", 9900, "ByUser", everything(...EVERYBODY)),
  "kube-controller-manager": schema(
    "workload-high",
    800,
    "ByNamespace",
    everything(user("system:kube-controller-manager")),
  ),
  "kube-scheduler": schema("workload-high", 800, "ByNamespace", everything(user("system:kube-scheduler"))),
  "kube-system-service-accounts": schema("workload-high", 900, "ByNamespace", everything(SYSTEM_ACCOUNTS)),
  probes: schema("exempt", 2, undefined, {
    subjects: EVERYBODY,
    nonResourceRules: [{ nonResourceURLs: ["/healthz", "/readyz", "/livez"], verbs: ["get"] }],
  }),
  "service-accounts": schema("workload-low", 9000, "ByUser", everything(group("system:serviceaccounts"))),
  "system-leader-election": schema("leader-election", 100, "ByUser", {
    subjects: [user("system:kube-controller-manager"), user("system:kube-scheduler"), SYSTEM_ACCOUNTS],
    resourceRules: [
      {
        apiGroups: ["coordination.k8s.io"],
        namespaces: ["*"],
        resources: ["leases"],
        verbs: ["get", "create", "update"],
      },
    ],
  }),
  "system-node-high": schema("node-high", 400, "ByUser", {
    subjects: [group("system:nodes")],
    resourceRules: [
      { apiGroups: [""], clusterScope: true, namespaces: ["*"], resources: ["nodes", "nodes/status"], verbs: ["*"] },
      { apiGroups: ["coordination.k8s.io"], namespaces: ["*"], resources: ["leases"], verbs: ["*"] },
    ],
  }),
  "system-nodes": schema("system", 500, "ByUser", everything(group("system:nodes"))),
};
