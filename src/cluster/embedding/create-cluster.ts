import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { type Clock, CodedError, type DeepReadonly } from "#base";
import {
  type Client,
  createDiscovery,
  createPodStreams,
  type Informers,
  iterateWatch,
  parseManifest,
  type PodStreams,
  type Transport,
} from "#client";
import { diagnose, gatherEvidence, renderDiagnosis } from "#diagnosis";
import type { Engine } from "#engine";
import type { FakeEngine } from "#engine/fake";
import { type ApiObject, type ExecSession, isStatus, type Pod, resources } from "#kinds";
import { applyObjects, readManifests } from "../manifests.ts";
import type { Cluster, ExecOptions, LoadedImage, Manifest } from "./cluster.ts";
import { createHold } from "./hold.ts";
import { readMetrics } from "./metrics.ts";
import { podsOf, targetPort } from "./pods-of.ts";
import { listenForward } from "./port-forward.ts";
import { locate, type ObjectRef } from "./reference.ts";
import { waitFor, withKind } from "./wait-for.ts";

/** What a cluster is a view of: an instance in this process, or one elsewhere. */
export interface ClusterParts {
  readonly transport: Transport;
  readonly client: Client;
  readonly informers: Informers;
  readonly clock: Clock;
  readonly kubeconfig: string | undefined;
  readonly server: string | undefined;
  readonly engines: ReadonlyMap<string, Engine>;
  readonly fakeEngines: ReadonlyMap<string, FakeEngine>;
  /** Milliseconds between the looks of a wait. */
  readonly interval: number;
  loadImage(archive: string | Readable): Promise<readonly LoadedImage[]>;
  end(): Promise<void>;
}

export function createCluster(parts: ClusterParts): Cluster {
  const { client, clock } = parts;
  const discovery = createDiscovery(client);
  const streams = createPodStreams(parts.transport, { userAgent: "slim" });
  const hold = createHold();
  const own = new AsyncDisposableStack();
  const firstPod = async (ref: ObjectRef, namespace = "default"): Promise<DeepReadonly<Pod>> =>
    (await podsOf(client, discovery, ref, namespace))[0]!;
  const wait = { client, discovery, streams, clock, interval: parts.interval };
  let ending: Promise<void> | undefined;

  return {
    kubeconfig: parts.kubeconfig,
    server: parts.server,
    client,
    discovery,
    informers: parts.informers,
    engines: parts.engines,
    fakeEngines: parts.fakeEngines,
    apply: (manifest, options = {}) => hold.during(applyManifest(parts, manifest, options)),
    delete: (manifest, options = {}) =>
      hold.during(
        (async () => {
          for (const object of (await objectsOf(manifest)).reverse()) {
            const at = await locate(discovery, object, options.namespace ?? "default");
            await client
              .delete(at.resource, at.name, { namespace: at.namespace, propagationPolicy: "Background" })
              .catch(ignoreAbsent);
          }
        })(),
      ),
    waitFor: (ref, options) => hold.during(waitFor(wait, ref, options)),
    why: (ref, options = {}) =>
      hold.during(
        (async () => {
          const at = await locate(discovery, ref, options.namespace ?? "default");
          const object = withKind(await client.get(at.resource, at.name, { namespace: at.namespace }), at);
          const diagnosis = diagnose(await gatherEvidence({ client, streams }, object));
          return { ...diagnosis, text: renderDiagnosis(diagnosis) };
        })(),
      ),
    logs: (ref, options = {}) =>
      hold.whileIterating(logLines(streams, () => firstPod(ref, options.namespace), options)),
    exec: (ref, command, options = {}) =>
      hold.during(
        (async () => {
          const pod = await firstPod(ref, options.namespace);
          const session = await streams.exec(namespaceOf(pod), pod.metadata.name, command, {
            ...(options.container ? { container: options.container } : {}),
            stdin: options.stdin !== undefined,
          });
          return outcomeOf(session, options);
        })(),
      ),
    execStream: async (ref, command, options = {}) => {
      const pod = await firstPod(ref, options.namespace);
      const { container, stdin = false, tty = false } = options;
      return streams.exec(namespaceOf(pod), pod.metadata.name, command, {
        ...(container ? { container } : {}),
        stdin,
        tty,
      });
    },
    connect: async (ref, port, options = {}) => {
      const namespace = options.namespace ?? "default";
      const pod = await firstPod(ref, namespace);
      const target = await targetPort(client, discovery, ref, namespace, port, pod);
      return streams.connect(namespaceOf(pod), pod.metadata.name, target);
    },
    async portForward(ref, { namespace = "default", port, localPort = 0, host = "127.0.0.1" }) {
      const pod = await firstPod(ref, namespace);
      const target = await targetPort(client, discovery, ref, namespace, port, pod);
      const open = () => streams.connect(namespaceOf(pod), pod.metadata.name, target);
      return own.use(await listenForward(open, { host, port: localPort }));
    },
    events: (options = {}) => hold.whileIterating(eventsOf(client, options)),
    watch: (resource, options) => hold.whileIterating(iterateWatch(client, resource, options)),
    metrics: () => hold.during(readMetrics(client)),
    loadImage: (archive) => hold.during(parts.loadImage(archive)),
    [Symbol.asyncDispose]() {
      ending ??= hold.during(own.disposeAsync().then(() => parts.end()));
      return ending;
    },
  };
}

const namespaceOf = (pod: DeepReadonly<Pod>) => pod.metadata.namespace ?? "default";

function ignoreAbsent(error: unknown): void {
  if (!isStatus(error, "NotFound")) throw error;
}

export async function objectsOf(manifest: Manifest): Promise<ApiObject[]> {
  if (typeof manifest === "string") return parseManifest(manifest, "the manifest");
  if (Array.isArray(manifest)) return manifest as ApiObject[];
  if ("file" in manifest && !("kind" in manifest)) {
    return readManifests(String(manifest.file), () =>
      Promise.reject(new CodedError("unreadable-manifest", "a program has no standard input to apply")),
    );
  }
  return [manifest as ApiObject];
}

async function applyManifest(
  { client, clock }: ClusterParts,
  manifest: Manifest,
  options: { namespace?: string; fieldManager?: string },
) {
  const end = clock.monotonic() + 5000;
  const retry = async <T>(call: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!isSoonRight(error) || clock.monotonic() > end) throw error;
        await clock.sleep(20);
      }
    }
  };
  const applied = await applyObjects(client, await objectsOf(manifest), {
    fieldManager: options.fieldManager ?? "slim",
    namespace: options.namespace ?? "default",
    retry,
  });
  return applied.map(({ object }) => object);
}

/** What a moment mends: a kind whose definition is new, a namespace whose ServiceAccount is not made yet. */
function isSoonRight(error: unknown): boolean {
  if (isStatus(error, "NotFound")) return error instanceof Error && /^no matches for kind/.test(error.message);
  return (
    isStatus(error, "Forbidden") && error instanceof Error && /error looking up service account/.test(error.message)
  );
}

async function* logLines(
  streams: PodStreams,
  find: () => Promise<DeepReadonly<Pod>>,
  { namespace: _namespace, ...query }: { namespace?: string; container?: string },
): AsyncGenerator<string, void> {
  const pod = await find();
  const stream = await streams.logs(namespaceOf(pod), pod.metadata.name, query);
  try {
    yield* createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY });
  } finally {
    stream.destroy();
  }
}

async function outcomeOf(session: ExecSession, { stdin, signal }: ExecOptions) {
  const abort = () => session.close();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    if (stdin !== undefined) session.stdin?.end(typeof stdin === "string" ? stdin : Buffer.from(stdin));
    const text = async (stream: Readable | null) => Buffer.concat((await stream?.toArray()) ?? []).toString("utf8");
    const [stdout, stderr, { exitCode }] = await Promise.all([
      text(session.stdout),
      text(session.stderr),
      session.done,
    ]);
    signal?.throwIfAborted();
    return { exitCode, stdout, stderr };
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

async function* eventsOf(client: Client, { namespace, signal }: { namespace?: string; signal?: AbortSignal }) {
  const watch = iterateWatch(client, resources.events, { namespace, ...(signal ? { signal } : {}) });
  for await (const { type, object } of watch) if (type === "ADDED" || type === "MODIFIED") yield object;
}
