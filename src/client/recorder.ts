import { type Clock, type DeepReadonly, type Logger, silentLogger } from "#base";
import { type ApiObject, type Event, isStatus, type ObjectReference, resources } from "#kinds";
import type { Client } from "./port.ts";

/** Records what happened to an object as Events. Never throws, never waits: writing goes on behind it. */
export interface Recorder {
  /** `message` is shown by `kubectl describe`; `action` makes it an event of the events.k8s.io kind (see `createRecorder`). */
  event(object: EventTarget, type: "Normal" | "Warning", reason: string, message: string, options?: EventOptions): void;
  /** Resolves when everything recorded so far is written or given up. */
  flush(): Promise<void>;
}

/** The object itself, or a reference to it (a container of a pod has `fieldPath: spec.containers{name}`). */
export type EventTarget = DeepReadonly<ApiObject> | DeepReadonly<ObjectReference> | object;

export interface EventOptions {
  annotations?: Record<string, string>;
  action?: string;
  related?: EventTarget;
}

export interface RecorderOptions {
  /** `deployment-controller`, `kubelet`, … */
  component: string;
  /** The node, for components that run on one. */
  host?: string;
  /** For events with an action: `default-scheduler-<host>`. */
  instance?: string;
}

/** As client-go: more similar events than this within the interval are combined; one object's burst and refill. */
const SIMILAR = 10;
const SIMILAR_INTERVAL = 600_000;
const BURST = 25;
const REFILL_MS = 300_000;
/** Idle time after which a repeated event of the events.k8s.io kind starts a new series. */
const SERIES_IDLE = 360_000;
const KNOWN = 4096;
const PENDING = 5000;

interface Known {
  name: string;
  namespace: string;
  count: number;
  first: string;
  at: number;
}

/**
 * Events as client-go writes them: the same event again raises `count` and `lastTimestamp` of the first; more than ten
 * events that differ in their message only are combined; a flood about one object is dropped. Events with an `action` are
 * those of the newer recorder (the scheduler's): `eventTime` and `series` in place of counts.
 * https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
 */
export function createRecorder(
  deps: { client: Client; clock: Clock; logger?: Logger },
  options: RecorderOptions,
): Recorder {
  const known = createLru<Known>(KNOWN);
  const similar = createLru<{ messages: Set<string>; at: number }>(KNOWN);
  const buckets = createLru<{ tokens: number; at: number }>(KNOWN);
  const logger = deps.logger ?? silentLogger;
  let last = Promise.resolve();
  let pending = 0;
  let serial = 0;

  function admit(spamKey: string, now: number): boolean {
    const bucket = buckets.get(spamKey) ?? { tokens: BURST, at: now };
    bucket.tokens = Math.min(BURST, bucket.tokens + (now - bucket.at) / REFILL_MS);
    bucket.at = now;
    buckets.set(spamKey, bucket);
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

  /** Combines events that differ in their message only, once there are too many of them. */
  function aggregate(key: string, message: string, now: number): { message: string; key: string } {
    let group = similar.get(key);
    if (!group || now - group.at > SIMILAR_INTERVAL) group = { messages: new Set(), at: now };
    group.at = now;
    group.messages.add(message);
    similar.set(key, group);
    if (group.messages.size < SIMILAR) return { message, key: `${key}\0${message}` };
    group.messages.delete(group.messages.values().next().value!);
    return { message: `(combined from similar events): ${message}`, key };
  }

  function enqueue(write: () => Promise<void>): void {
    if (pending >= PENDING) {
      logger.warn("too many events are waiting to be written; one is dropped");
      return;
    }
    pending++;
    last = last
      .then(write)
      .catch((error: unknown) => {
        if (!isStatus(error, "NotFound", "Forbidden")) logger.warn("writing an event failed", { error });
      })
      .finally(() => void pending--);
  }

  async function writeCounted(event: Event, key: string, now: number): Promise<void> {
    const stamp = secondsOf(now);
    const before = known.get(key);
    if (before) {
      const body = { count: before.count + 1, lastTimestamp: stamp, message: event.message };
      try {
        await deps.client.patch(resources.events, before.name, { type: "strategic", body }, before);
        before.count++;
        return;
      } catch (error) {
        if (!isStatus(error, "NotFound")) throw error;
      }
    }
    await deps.client.create(resources.events, { ...event, count: 1, firstTimestamp: stamp, lastTimestamp: stamp });
    known.set(key, {
      name: event.metadata.name,
      namespace: event.metadata.namespace!,
      count: 1,
      first: stamp,
      at: now,
    });
  }

  async function writeSeries(event: Event, key: string, now: number): Promise<void> {
    const before = known.get(key);
    if (before && now - before.at < SERIES_IDLE) {
      before.at = now;
      before.count++;
      const body = { series: { count: before.count, lastObservedTime: microsOf(now) } };
      try {
        await deps.client.patch(resources.events, before.name, { type: "strategic", body }, before);
        return;
      } catch (error) {
        if (!isStatus(error, "NotFound")) throw error;
      }
    }
    await deps.client.create(resources.events, { ...event, eventTime: microsOf(now) });
    const { name, namespace } = event.metadata;
    known.set(key, { name, namespace: namespace!, count: 1, first: microsOf(now), at: now });
  }

  return {
    event(object, type, reason, text, more) {
      const now = deps.clock.now();
      const target = referenceTo(object);
      const about = [target.apiVersion, target.kind, target.namespace, target.name, target.uid, target.fieldPath];
      const spamKey = about.slice(0, 5).join("\0");
      const series = more?.action !== undefined;
      const groupKey = [...about, type, reason, more?.action].join("\0");
      const message = text.length > 1024 ? `${text.slice(0, 1021)}...` : text;
      const folded = series ? { message, key: `${groupKey}\0${message}` } : aggregate(groupKey, message, now);
      if (!series && !admit(spamKey, now)) return;
      const name = `${target.name ?? ""}.${(BigInt(now) * 1_000_000n + BigInt(serial++ % 1_000_000)).toString(16)}`;
      const event: Event = {
        apiVersion: "v1",
        kind: "Event",
        metadata: {
          name,
          namespace: target.namespace || "default",
          ...(more?.annotations ? { annotations: more.annotations } : {}),
        },
        involvedObject: target,
        reason,
        message: folded.message,
        type,
        source: series ? {} : { component: options.component, ...(options.host ? { host: options.host } : {}) },
        reportingComponent: options.component,
        reportingInstance: series ? (options.instance ?? options.component) : (options.host ?? ""),
        ...(more?.action ? { action: more.action } : {}),
        ...(more?.related ? { related: referenceTo(more.related) } : {}),
      };
      enqueue(() => (series ? writeSeries : writeCounted)(event, folded.key, now));
    },
    async flush() {
      await last;
    },
  };
}

/** The ObjectReference of an object; a reference is returned as it is. */
export function referenceTo(object: EventTarget): ObjectReference {
  const item = object as ApiObject;
  if (!item.metadata) return object as ObjectReference;
  const { name, namespace, uid, resourceVersion } = item.metadata;
  return {
    kind: item.kind,
    ...(namespace ? { namespace } : {}),
    name,
    ...(uid ? { uid } : {}),
    apiVersion: item.apiVersion,
    ...(resourceVersion ? { resourceVersion } : {}),
  };
}

const secondsOf = (now: number): string => `${new Date(now).toISOString().slice(0, 19)}Z`;
const microsOf = (now: number): string => `${new Date(now).toISOString().slice(0, 23)}000Z`;

function createLru<V>(size: number): { get(key: string): V | undefined; set(key: string, value: V): void } {
  const entries = new Map<string, V>();
  return {
    get: (key) => entries.get(key),
    set(key, value) {
      entries.delete(key);
      entries.set(key, value);
      if (entries.size > size) entries.delete(entries.keys().next().value!);
    },
  };
}
