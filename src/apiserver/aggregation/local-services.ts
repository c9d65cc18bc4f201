import { type Clock, deepEqual, type Logger, type Random } from "#base";
import { type ApiObject, type APIService, type KindInfo, type MutableScheme, resources } from "#kinds";
import { isStoreError, type Store } from "#store";
import { keyOf, prefixOf } from "../registry/keys.ts";
import { toStored } from "../registry/view.ts";
import { timeOf } from "../verbs/create.ts";

export const AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged";

/** Order of the groups in discovery: group priority, version priority. Others are those of custom resources. */
const PRIORITIES: Readonly<Record<string, readonly [number, number]>> = {
  "/v1": [18000, 1],
  "apps/v1": [17800, 15],
  "events.k8s.io/v1": [17750, 15],
  "authentication.k8s.io/v1": [17700, 15],
  "authorization.k8s.io/v1": [17600, 15],
  "autoscaling/v1": [17500, 15],
  "autoscaling/v2": [17500, 30],
  "batch/v1": [17400, 15],
  "certificates.k8s.io/v1": [17300, 15],
  "networking.k8s.io/v1": [17200, 15],
  "policy/v1": [17100, 15],
  "rbac.authorization.k8s.io/v1": [17000, 15],
  "storage.k8s.io/v1": [16800, 15],
  "admissionregistration.k8s.io/v1": [16700, 15],
  "apiextensions.k8s.io/v1": [16700, 15],
  "scheduling.k8s.io/v1": [16600, 15],
  "coordination.k8s.io/v1": [16500, 15],
  "node.k8s.io/v1": [16300, 15],
  "discovery.k8s.io/v1": [16200, 15],
  "resource.k8s.io/v1": [16200, 21],
  "flowcontrol.apiserver.k8s.io/v1": [16100, 21],
};
const CUSTOM = [1000, 100] as const;

export interface LocalServicesDeps {
  readonly store: Store;
  readonly scheme: MutableScheme;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** Keeps the APIServices of the groups that this server itself serves. */
export interface LocalServices extends Disposable {
  settled(): Promise<void>;
}

/**
 * Writes an APIService for every group and version that is served here (but for the aggregator's own), as the original lists
 * them, and removes those of groups that are served no more.
 */
export function startLocalServices({ store, scheme, clock, random, logger }: LocalServicesDeps): LocalServices {
  const { group, version, resource } = resources.apiServices;
  const kind = scheme.byResource(group, version, resource)!;
  let running: Promise<void> | undefined;
  let again = false;

  async function sync(): Promise<void> {
    const wanted = servicesOf(scheme);
    for (const [name, service] of wanted) await ensure(store, kind, name, service, { clock, random });
    for (const item of store.list(prefixOf(kind)).items) {
      const { metadata } = item.object as ApiObject;
      if (metadata.labels?.[AUTOMANAGED] && !wanted.has(metadata.name)) await store.delete(item.key, item.revision);
    }
  }

  function run(): void {
    again = true;
    running ??= (async () => {
      while (again) {
        again = false;
        // definitions often come in numbers: their changes are taken together
        await new Promise((resolve) => setImmediate(resolve));
        await sync().catch((error: unknown) => {
          if (isStoreError(error, "conflict") || isStoreError(error, "not-found") || isStoreError(error, "exists"))
            again = true;
          else if (!isStoreError(error, "closed")) logger.error("APIServices could not be written", { error });
        });
      }
      running = undefined;
    })();
  }

  const subscription = scheme.onChange(run);
  run();
  return {
    async settled() {
      while (running) await running;
    },
    [Symbol.dispose]: () => subscription[Symbol.dispose](),
  };
}

function servicesOf(scheme: MutableScheme): Map<string, Pick<APIService, "spec"> & { automanaged: string }> {
  const services = new Map<string, Pick<APIService, "spec"> & { automanaged: string }>();
  for (const { group, version, decode } of scheme.all()) {
    if (group === resources.apiServices.group) continue;
    const [groupPriorityMinimum, versionPriority] = PRIORITIES[`${group}/${version}`] ?? CUSTOM;
    services.set(`${version}.${group}`, {
      spec: { ...(group ? { group } : {}), version, groupPriorityMinimum, versionPriority },
      automanaged: decode ? "true" : "onstart",
    });
  }
  return services;
}

async function ensure(
  store: Store,
  kind: KindInfo,
  name: string,
  { spec, automanaged }: Pick<APIService, "spec"> & { automanaged: string },
  { clock, random }: { clock: Clock; random: Random },
): Promise<void> {
  const key = keyOf(kind, undefined, name);
  const stored = store.latest(key);
  const before = stored?.object as unknown as APIService | undefined;
  // one that somebody points elsewhere is theirs
  if (before && (before.spec.service || deepEqual(before.spec, spec))) return;
  const now = timeOf(clock.now());
  const object = {
    apiVersion: "apiregistration.k8s.io/v1",
    kind: "APIService",
    metadata: before?.metadata ?? {
      name,
      uid: random.uuid(),
      creationTimestamp: now,
      labels: { [AUTOMANAGED]: automanaged },
    },
    spec,
    status: {
      conditions: [
        {
          type: "Available",
          status: "True",
          lastTransitionTime: now,
          reason: "Local",
          message: "Local APIServices are always available",
        },
      ],
    },
  };
  if (stored) await store.update(key, toStored(kind, object as unknown as ApiObject), stored.revision);
  else await store.create(key, toStored(kind, object as unknown as ApiObject));
}
