import type { DeepReadonly } from "#base";
import type { Resource, WatchEvent } from "#kinds";
import type { Client, WatchOptions } from "./port.ts";

export interface IterateOptions extends Omit<WatchOptions<never>, "onEvent" | "onEnd" | "resourceVersion"> {
  /** Absent: what is there now comes first, as ADDED. */
  resourceVersion?: string;
  signal?: AbortSignal;
}

/**
 * A watch to be walked with `for await`. Leaving the loop or aborting the signal ends it; when the server ends the watch, the
 * loop ends. @throws StatusError 410 (`Expired`) when `resourceVersion` is too old
 */
export async function* iterateWatch<T>(
  client: Client,
  resource: Resource<T>,
  options: IterateOptions = {},
): AsyncGenerator<WatchEvent<DeepReadonly<T>>, void> {
  const { signal, resourceVersion, ...filter } = options;
  signal?.throwIfAborted();
  let from = resourceVersion;
  if (from === undefined) {
    const { namespace, labelSelector, fieldSelector } = filter;
    const list = await client.list(resource, {
      namespace,
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...(signal ? { signal } : {}),
    });
    for (const object of list.items) {
      yield { type: "ADDED", object };
      if (signal?.aborted) return;
    }
    from = list.metadata.resourceVersion;
  }
  if (signal?.aborted) return;
  const queue = createQueue<WatchEvent<DeepReadonly<T>>>();
  const abort = () => queue.end();
  const watch = client.watch(resource, {
    ...filter,
    resourceVersion: from,
    onEvent: (event) => queue.push(event),
    onEnd: (error) => queue.end(error),
  });
  signal?.addEventListener("abort", abort, { once: true });
  try {
    yield* queue;
  } finally {
    signal?.removeEventListener("abort", abort);
    watch.stop();
  }
}

/** Hands what is pushed to the one who iterates. */
export function createQueue<T>(): AsyncIterable<T> & { push(value: T): void; end(error?: unknown): void } {
  const waiting: T[] = [];
  let ended: { error: unknown } | undefined;
  let wake: (() => void) | undefined;
  const ring = () => {
    wake?.();
    wake = undefined;
  };
  return {
    push(value) {
      if (ended) return;
      waiting.push(value);
      ring();
    },
    end(error) {
      ended ??= { error };
      ring();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (waiting.length > 0) yield waiting.shift() as T;
        if (ended) {
          if (ended.error !== undefined) throw ended.error;
          return;
        }
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}
