import { type Clock, createWorkQueue, type Logger, messageOf, type Random } from "#base";
import type { ChangeHandler, Client, Informer, Informers, Recorder } from "#client";
import { isStatus } from "#kinds";

export interface ControllerDeps {
  readonly client: Client;
  readonly informers: Informers;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** A recorder that names `component` as the source of its events. */
  recorder(component: string): Recorder;
  readonly metrics?: ControllerMetrics;
}

export interface ControllerMetrics {
  /** After every reconcile of a key. */
  reconciled?(controller: string, result: "done" | "requeued" | "failed", milliseconds: number): void;
}

/** What a reconcile gives: nothing when it is done until the next event, or when to look again. */
// biome-ignore lint/suspicious/noConfusingVoidType: a reconcile that returns nothing is the common case
export type ReconcileResult = { readonly requeueAfterMs?: number | undefined } | undefined | void;

export interface ControllerSpec {
  readonly name: string;
  /** Keys handled at once. Default 5. */
  readonly concurrency?: number;
  /** Registers event handlers that turn changes into keys. */
  watch(sources: Sources): void;
  /**
   * Compares what is wanted with what is there for one key and takes the next steps. Must be able to run at any time and any
   * number of times. A rejection is retried with back-off (5 ms doubling to 1000 s); conflicts are expected and quiet.
   */
  reconcile(key: string, context: { signal: AbortSignal }): Promise<ReconcileResult>;
}

export interface Sources {
  /** Handlers run once the controller starts; what is in the cache already comes as `add`. */
  on<T>(informer: Informer<T>, handler: ChangeHandler<T>): void;
  /** An informer that reconciling reads: the controller starts when it has synced. */
  needs<T>(informer: Informer<T>): void;
  enqueue(key: string): void;
  enqueueAfter(key: string, milliseconds: number): void;
}

export interface Controller extends AsyncDisposable {
  readonly name: string;
  /** Resolves when the caches are filled and keys are being handled. */
  start(): Promise<void>;
  /** True while no key waits, is handled or is timed. */
  readonly idle: boolean;
}

/** A queue of keys with handlers that fill it and a reconcile that works it off. */
export function createController(deps: ControllerDeps, spec: ControllerSpec): Controller {
  const logger = deps.logger.child({ controller: spec.name });
  const queue = createWorkQueue(deps.clock);
  const stopping = new AbortController();
  const subscriptions = new DisposableStack();
  const running = new Set<Promise<void>>();

  async function handle(key: string): Promise<void> {
    const since = deps.clock.monotonic();
    const done = (result: "done" | "requeued" | "failed") =>
      deps.metrics?.reconciled?.(spec.name, result, deps.clock.monotonic() - since);
    try {
      const result = await spec.reconcile(key, { signal: stopping.signal });
      queue.forget(key);
      if (result?.requeueAfterMs !== undefined) queue.addAfter(key, Math.max(1, result.requeueAfterMs));
      done(result?.requeueAfterMs === undefined ? "done" : "requeued");
    } catch (error) {
      if (stopping.signal.aborted) return;
      const expected = isStatus(error, "Conflict", "AlreadyExists");
      if (expected) logger.debug("reconciling is tried again", { key, why: messageOf(error) });
      else logger.warn("reconciling failed; it is tried again", { key, error });
      queue.addRateLimited(key);
      done("failed");
    }
  }

  return {
    name: spec.name,
    get idle() {
      return queue.idle;
    },
    async start() {
      const informers: Informer<never>[] = [];
      const handlers: (() => void)[] = [];
      spec.watch({
        on(informer, handler) {
          informers.push(informer as unknown as Informer<never>);
          handlers.push(() => subscriptions.use(informer.onChange(handler)));
        },
        needs: (informer) => void informers.push(informer as unknown as Informer<never>),
        enqueue: (key) => queue.add(key),
        enqueueAfter: (key, milliseconds) => queue.addAfter(key, milliseconds),
      });
      await Promise.all(informers.map((informer) => informer.synced(stopping.signal)));
      for (const register of handlers) register();
      const tracked = (key: string) => {
        const one = handle(key).finally(() => running.delete(one));
        running.add(one);
        return one;
      };
      queue.run(tracked, { concurrency: spec.concurrency ?? 5, signal: stopping.signal });
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error(`the ${spec.name} controller stops`));
      subscriptions.dispose();
      await Promise.allSettled(running);
    },
  };
}
