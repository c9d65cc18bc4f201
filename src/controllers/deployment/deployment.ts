import { type DeepReadonly, deepEqual, messageOf } from "#base";
import {
  controllerReference,
  type DeploymentCondition,
  type DeploymentStatus,
  isEmptySelector,
  isPodTerminal,
  isStatus,
  matchesSelector,
  type Pod,
  type ReplicaSet,
  resources,
} from "#kinds";
import { conditionOf, withCondition } from "../runtime/conditions.ts";
import { type Controller, type ControllerDeps, createController, type ReconcileResult } from "../runtime/controller.ts";
import { copyOf, fromCache, ignoreNotFound, isNamespaceTerminating, keyOf, writeStatus } from "../runtime/objects.ts";
import { claim, controlledBy, controllerKey, indexByController } from "../runtime/ownership.ts";
import { shortHash } from "../runtime/template-hash.ts";
import {
  type D,
  divide,
  HASH_LABEL,
  isScalingEvent,
  newSize,
  planCleanup,
  planNew,
  planOld,
  planScaling,
  REVISION,
  replicasOf,
  nextRevision,
  revisionOf,
  type RS,
  rsAnnotations,
  sameTemplate,
  type Scale,
  sizeAnnotations,
  sizeOf,
} from "./plan.ts";
import {
  baseStatus,
  conditionsOf,
  deadlineIn,
  hasDeadline,
  isComplete,
  makeCondition,
  rolloutStatus,
} from "./status.ts";

const MAX_NAME = 253;

/** https://kubernetes.io/docs/concepts/workloads/controllers/deployment/ */
export function createDeploymentController(deps: ControllerDeps): Controller {
  const { client, clock } = deps;
  const deployments = deps.informers.for(resources.deployments);
  const replicaSets = deps.informers.for(resources.replicaSets);
  const pods = deps.informers.for(resources.pods);
  const recorder = deps.recorder("deployment-controller");
  indexByController(replicaSets);
  indexByController(pods);

  async function scale(d: D, { rs, replicas }: Scale): Promise<RS> {
    const resized = replicas !== sizeOf(rs);
    const annotations = { ...rs.metadata.annotations, ...sizeAnnotations(d) };
    if (!resized && deepEqual(annotations, rs.metadata.annotations)) return rs;
    const copy = copyOf(resources.replicaSets, rs);
    const saved = await client.update(resources.replicaSets, {
      ...copy,
      metadata: { ...copy.metadata, annotations },
      spec: { ...copy.spec, replicas },
    });
    if (resized) {
      const way = sizeOf(rs) < replicas ? "up" : "down";
      const message = `Scaled ${way} replica set ${rs.metadata.name} from ${sizeOf(rs)} to ${replicas}`;
      recorder.event(d, "Normal", "ScalingReplicaSet", message);
    }
    return saved;
  }
  async function scaleAll(d: D, plan: readonly Scale[]): Promise<RS[]> {
    const saved: RS[] = [];
    for (const step of plan) saved.push(await scale(d, step));
    return saved;
  }

  /** Writes the status; the revision annotation goes with it, as kube-controller-manager does. */
  async function save(d: D, status: DeploymentStatus, revision?: bigint): Promise<D> {
    const copy = copyOf(resources.deployments, d);
    const value = revision === undefined ? undefined : String(revision);
    const annotate = value !== undefined && d.metadata.annotations?.[REVISION] !== value;
    if (!annotate && deepEqual(status, d.status)) return d;
    const metadata = annotate
      ? { ...copy.metadata, annotations: { ...copy.metadata.annotations, [REVISION]: value } }
      : copy.metadata;
    const saved = await client.update(resources.deployments, { ...copy, metadata, status }, { subresource: "status" });
    if (!annotate || saved.metadata.annotations?.[REVISION] === value) return saved;
    const body = { metadata: { annotations: { [REVISION]: value } } };
    const { name, namespace } = d.metadata;
    return client.patch(resources.deployments, name, { type: "merge", body }, { namespace });
  }

  const withProgress = (d: D, condition: DeploymentCondition): DeploymentStatus => ({
    ...(d.status as DeploymentStatus),
    conditions: withCondition(conditionsOf(d.status), condition),
  });

  /** Brings annotations and minReadySeconds of the ReplicaSet of the present template up to date. */
  async function refresh(d: D, current: RS, old: readonly RS[]): Promise<{ d: D; current: RS }> {
    const annotations = rsAnnotations(d, current, nextRevision(old));
    const minReadySeconds = d.spec.minReadySeconds ?? 0;
    if (
      !deepEqual(annotations, current.metadata.annotations) ||
      (current.spec.minReadySeconds ?? 0) !== minReadySeconds
    ) {
      const copy = copyOf(resources.replicaSets, current);
      const next = { ...copy, metadata: { ...copy.metadata, annotations }, spec: { ...copy.spec, minReadySeconds } };
      return { d, current: await client.update(resources.replicaSets, next) };
    }
    let status = d.status as DeploymentStatus | undefined;
    if (hasDeadline(d) && !conditionOf(d.status?.conditions, "Progressing")) {
      const message = `Found new replica set "${current.metadata.name}"`;
      status = withProgress(d, makeCondition("Progressing", "True", "FoundNewReplicaSet", message, clock.now()));
    }
    return { d: await save(d, status ?? {}, revisionOf(current)), current };
  }

  /** Creates the ReplicaSet of the present template. */
  async function create(d: D, old: readonly RS[]): Promise<{ d: D; current: RS }> {
    const hash = shortHash(d.spec.template, d.status?.collisionCount);
    const revision = nextRevision(old);
    const replicas = newSize(d, old, 0);
    const rs = newReplicaSet(d, hash, rsAnnotations(d, undefined, revision), replicas);
    const { name, namespace } = rs.metadata;
    let made: RS;
    try {
      made = await client.create(resources.replicaSets, rs);
    } catch (error) {
      if (isStatus(error, "AlreadyExists")) {
        const there = await ignoreNotFound(client.get(resources.replicaSets, name, { namespace }));
        const ours = there?.metadata.ownerReferences?.some((ref) => ref.controller && ref.uid === d.metadata.uid);
        if (there && ours && sameTemplate(there.spec.template, d.spec.template)) {
          return { d: await save(d, (d.status as DeploymentStatus) ?? {}, revision), current: there };
        }
        await save(d, { ...(d.status as DeploymentStatus), collisionCount: (d.status?.collisionCount ?? 0) + 1 });
        throw error;
      }
      await reportFailure(d, name, error);
      throw error;
    }
    if (replicas > 0) {
      recorder.event(d, "Normal", "ScalingReplicaSet", `Scaled up replica set ${name} from 0 to ${replicas}`);
    }
    let status = (d.status as DeploymentStatus | undefined) ?? {};
    if (hasDeadline(d)) {
      const message = `Created new replica set "${name}"`;
      status = withProgress(d, makeCondition("Progressing", "True", "NewReplicaSetCreated", message, clock.now()));
    }
    return { d: await save(d, status, revision), current: made };
  }
  async function reportFailure(d: D, name: string, error: unknown): Promise<void> {
    if (isNamespaceTerminating(error)) return;
    const message = `Failed to create new replica set "${name}": ${messageOf(error)}`;
    recorder.event(d, "Warning", "ReplicaSetCreateError", message);
    if (!hasDeadline(d)) return;
    await save(
      d,
      withProgress(d, makeCondition("Progressing", "False", "ReplicaSetCreateError", message, clock.now())),
    );
  }

  /** The rollout's status and when to look for its deadline. */
  async function finish(d: D, all: readonly RS[], current: RS | undefined): Promise<ReconcileResult> {
    const now = clock.now();
    const status = rolloutStatus(d, all, current, now);
    await save(d, status);
    return { requeueAfterMs: deadlineIn(d, status, now) };
  }

  async function rollRolling(given: D, list: readonly RS[]): Promise<ReconcileResult> {
    const { current: found, old } = divide(given, list);
    const { d, current } = found ? await refresh(given, found, old) : await create(given, old);
    const all = [...old, current];
    const up = await scaleAll(d, planNew(d, current, all));
    if (up[0]) return finish(d, [...old, up[0]], up[0]);
    const down = await scaleAll(d, planOld(d, current, old));
    if (down.length === 0 && isComplete(d, d.status)) await cleanup(d, old);
    const next = old.map((rs) => down.find(({ metadata }) => metadata.uid === rs.metadata.uid) ?? rs);
    return finish(d, [...next, current], current);
  }

  async function rollRecreate(given: D, list: readonly RS[]): Promise<ReconcileResult> {
    const { current: found, old } = divide(given, list);
    const refreshed = found ? await refresh(given, found, old) : undefined;
    const now = refreshed?.d ?? given;
    const known = refreshed ? [...old, refreshed.current] : old;
    const down = await scaleAll(
      now,
      old.filter((rs) => sizeOf(rs) > 0).map((rs) => ({ rs, replicas: 0 })),
    );
    if (down.length > 0) return finish(now, known, refreshed?.current);
    const running = old.some((rs) => controlledBy(pods, rs.metadata.uid).some((pod) => !isPodTerminal(pod)));
    if (running) return finish(now, known, refreshed?.current);
    const { d, current } = refreshed ?? (await create(now, old));
    const [scaled = current] = await scaleAll(
      d,
      sizeOf(current) === replicasOf(d) ? [] : [{ rs: current, replicas: replicasOf(d) }],
    );
    if (isComplete(d, d.status)) await cleanup(d, old);
    return finish(d, [...old, scaled], scaled);
  }

  async function cleanup(d: D, old: readonly RS[]): Promise<void> {
    for (const { metadata } of planCleanup(d, old)) {
      await ignoreNotFound(client.delete(resources.replicaSets, metadata.name, { namespace: metadata.namespace }));
    }
  }

  /** Sizes only: after a change of `spec.replicas`, or while paused. */
  async function syncSizes(given: D, list: readonly RS[]): Promise<ReconcileResult> {
    const { current: found, old } = divide(given, list);
    const { d, current } = found ? await refresh(given, found, old) : { d: given, current: undefined };
    const scaled = await scaleAll(d, planScaling(d, current, old));
    if (d.spec.paused) await cleanup(d, old);
    const latest = (rs: RS) => scaled.find(({ metadata }) => metadata.uid === rs.metadata.uid) ?? rs;
    const all = (current ? [...old, current] : old).map(latest);
    await save(d, baseStatus(d, all, current && latest(current), clock.now()));
  }

  /** Pausing and resuming stop and restart the clock of the progress deadline. */
  async function checkPaused(d: D): Promise<D> {
    const progressing = conditionOf(d.status?.conditions, "Progressing");
    if (!hasDeadline(d) || progressing?.reason === "ProgressDeadlineExceeded") return d;
    const paused = progressing?.reason === "DeploymentPaused";
    if (Boolean(d.spec.paused) === paused) return d;
    const [reason, message] = d.spec.paused
      ? ["DeploymentPaused", "Deployment is paused"]
      : ["DeploymentResumed", "Deployment is resumed"];
    return save(d, withProgress(d, makeCondition("Progressing", "Unknown", reason!, message!, clock.now())));
  }

  return createController(deps, {
    name: "deployment",
    watch({ on, enqueue }) {
      const owner = (rs: RS) => controllerKey(rs, resources.deployments as never);
      const changed = (rs: RS) => {
        const key = owner(rs);
        if (key) return enqueue(key);
        for (const d of deployments.list(rs.metadata.namespace)) {
          if (!isEmptySelector(d.spec.selector) && matchesSelector(d.spec.selector, rs.metadata.labels))
            enqueue(keyOf(d));
        }
      };
      on(deployments, {
        add: (d) => enqueue(keyOf(d)),
        update: (d) => enqueue(keyOf(d)),
        delete: (d) => enqueue(keyOf(d)),
      });
      on(replicaSets, {
        add: changed,
        update(rs, previous) {
          const before = owner(previous);
          if (before && before !== owner(rs)) enqueue(before);
          changed(rs);
        },
        delete: (rs) => void (owner(rs) && enqueue(owner(rs)!)),
      });
      on(pods, {
        update: (pod, previous) => void (isPodTerminal(pod) !== isPodTerminal(previous) && podGone(pod)),
        delete: podGone,
      });
      /** A Recreate rollout waits for the last old pod. */
      function podGone(pod: DeepReadonly<Pod>): void {
        const rsKey = controllerKey(pod, resources.replicaSets as never);
        const rs = rsKey ? fromCache(replicaSets, rsKey) : undefined;
        const key = rs && owner(rs);
        if (key && fromCache(deployments, key)?.spec.strategy?.type === "Recreate") enqueue(key);
      }
    },
    async reconcile(key) {
      const found = fromCache(deployments, key);
      if (!found) return;
      if (isEmptySelector(found.spec.selector)) {
        const message = "This deployment is selecting all pods. A non-empty selector is required.";
        recorder.event(found, "Warning", "SelectingAll", message);
        const observedGeneration = found.metadata.generation ?? 0;
        if ((found.status?.observedGeneration ?? 0) >= observedGeneration) return;
        await writeStatus(client, resources.deployments, found, {
          ...(found.status as DeploymentStatus),
          observedGeneration,
        });
        return;
      }
      const list = await claim(client, {
        informer: replicaSets,
        resource: resources.replicaSets,
        owner: found,
        ownerResource: resources.deployments,
        matches: (rs) => matchesSelector(found.spec.selector, rs.metadata.labels),
      });
      if (found.metadata.deletionTimestamp) {
        const { current } = divide(found, list);
        await save(found, baseStatus(found, list, current, clock.now()));
        return;
      }
      const d = await checkPaused(found);
      if (d.spec.paused || isScalingEvent(d, list)) return syncSizes(d, list);
      return d.spec.strategy?.type === "Recreate" ? rollRecreate(d, list) : rollRolling(d, list);
    },
  });
}

function newReplicaSet(d: D, hash: string, annotations: Record<string, string>, replicas: number): ReplicaSet {
  const { template, selector, minReadySeconds } = d.spec;
  const labels = { ...template.metadata?.labels, [HASH_LABEL]: hash };
  // Shared with the Deployment: read-only from here on, as everything that is sent.
  const { selector: mutable, template: source } = copyOf(resources.deployments, d).spec;
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name: `${d.metadata.name.slice(0, MAX_NAME - 1 - hash.length)}-${hash}`,
      ...(d.metadata.namespace ? { namespace: d.metadata.namespace } : {}),
      labels,
      annotations,
      ownerReferences: [controllerReference(d, resources.deployments)],
    },
    spec: {
      replicas,
      ...(minReadySeconds ? { minReadySeconds } : {}),
      selector: { ...mutable, matchLabels: { ...selector.matchLabels, [HASH_LABEL]: hash } },
      template: { ...source, metadata: { ...source.metadata, labels } },
    },
  };
}
