import { type DeepReadonly, deepEqual } from "#base";
import type { Informer } from "#client";
import {
  addUsage,
  type ApiObject,
  canonicalQuantity,
  isPodTerminal,
  quotaCounts,
  quotaMatches,
  quotaUsage,
  type Resource,
  type ResourceQuota,
  resources,
  type Usage,
} from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { discover } from "../runtime/discovery.ts";
import { type AnyObject, fromCache, keyOf, writeStatus } from "../runtime/objects.ts";

type Quota = DeepReadonly<ResourceQuota>;

/** Between changes in a namespace and the new sums, milliseconds: a burst is counted once. */
const GATHER = 50;
/** Between a charge and the sum that corrects it, milliseconds. */
const SETTLE = 1000;

const COUNTED: readonly Resource[] = [
  resources.pods,
  resources.services,
  resources.configMaps,
  resources.secrets,
  resources.replicationControllers,
  resources.persistentVolumeClaims,
  resources.resourceQuotas,
] as unknown as readonly Resource[];

/** Keeps `status.used` of quotas. https://kubernetes.io/docs/concepts/policy/resource-quotas/ */
export function createResourceQuotaController(deps: ControllerDeps): Controller {
  const quotas = deps.informers.for(resources.resourceQuotas);
  const informers = new Map<string, Informer<ApiObject>>();
  let onChange: (informer: Informer<ApiObject>) => void = () => {};

  for (const resource of COUNTED) informers.set(keyFor(resource), deps.informers.for(resource));
  for (const informer of informers.values()) byNamespace(informer);

  /** The informer of what a `count/…` name counts; it is watched from then on. */
  async function counted(name: string): Promise<Informer<ApiObject> | undefined> {
    const [plural = "", ...rest] = name.slice("count/".length).split(".");
    const group = rest.join(".");
    const key = `${group}/${plural}`;
    const known = informers.get(key);
    if (known) return known;
    const { resources: served } = await discover(deps.client);
    const resource = served.find((one) => one.group === group && one.resource === plural && one.namespaced);
    if (!resource) return undefined;
    const { version, kind } = resource;
    const informer = deps.informers.for({ group, version, resource: plural, kind, namespaced: true } as Resource);
    byNamespace(informer);
    informers.set(key, informer);
    await informer.synced();
    onChange(informer);
    return informer;
  }

  async function usedBy(quota: Quota): Promise<Usage> {
    const names = Object.keys(quota.spec?.hard ?? {});
    const wanted = new Set<Informer<ApiObject>>();
    for (const informer of informers.values())
      if (names.some((name) => quotaCounts(informer.resource, name))) wanted.add(informer);
    for (const name of names.filter((one) => one.startsWith("count/"))) {
      const informer = await counted(name);
      if (informer) wanted.add(informer);
    }
    let total: Usage = {};
    for (const informer of wanted) {
      for (const object of informer.byIndex("namespace", quota.metadata.namespace ?? "")) {
        if (!quotaMatches(quota, informer.resource, object)) continue;
        total = addUsage(total, quotaUsage(informer.resource, object, deps.clock.now()));
      }
    }
    return Object.fromEntries(names.map((name) => [name, canonicalQuantity(total[name] ?? "0") ?? "0"]));
  }

  return createController(deps, {
    name: "resourcequota",
    watch({ on, enqueue, enqueueAfter }) {
      const changedIn = ({ metadata }: AnyObject) => {
        for (const quota of quotas.list(metadata.namespace)) enqueueAfter(keyOf(quota), GATHER);
      };
      const handlers = {
        add: changedIn,
        update(object: AnyObject, before: AnyObject) {
          const ended = object.kind === "Pod" && isPodTerminal(object as never) !== isPodTerminal(before as never);
          if (ended || object.metadata.generation !== before.metadata.generation) changedIn(object);
        },
        delete: changedIn,
      };
      onChange = (informer) => void informer.onChange(handlers);
      on(quotas, {
        add: (quota) => enqueue(keyOf(quota)),
        update(quota, before) {
          // What admission has just charged may not be written yet; what was charged and then refused is given back later.
          if (quota.metadata.generation === before.metadata.generation && deepEqual(quota.spec, before.spec))
            enqueueAfter(keyOf(quota), SETTLE);
          else enqueue(keyOf(quota));
        },
      });
      for (const informer of informers.values()) on(informer, handlers);
    },
    async reconcile(key) {
      const quota = fromCache(quotas, key);
      if (!quota) return;
      const hard = { ...quota.spec?.hard };
      const status = { hard, used: await usedBy(quota) };
      if (!deepEqual(status, { hard: quota.status?.hard ?? {}, used: quota.status?.used ?? {} })) {
        await writeStatus(deps.client, resources.resourceQuotas, quota, status);
      }
    },
  });
}

function byNamespace(informer: Informer<ApiObject>): void {
  informer.addIndex("namespace", ({ metadata }) => [metadata.namespace ?? ""]);
}

function keyFor({ group, resource }: Resource): string {
  return `${group}/${resource}`;
}
