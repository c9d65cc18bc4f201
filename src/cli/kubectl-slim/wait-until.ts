import { iterateWatch } from "#client";
import { type ApiObject, isStatus, type Resource } from "#kinds";
import type { Context } from "./context.ts";

/** States of one object from now on; `undefined` once it is gone. Ends with the signal. */
export async function* statesOf(
  { client }: Context,
  resource: Resource,
  name: string,
  namespace: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<ApiObject | undefined, void> {
  const fieldSelector = `metadata.name=${name}`;
  for (;;) {
    const { items, metadata } = await client.list(resource, { namespace, fieldSelector, signal });
    yield items[0] as ApiObject | undefined;
    try {
      for await (const { type, object } of iterateWatch(client, resource, {
        namespace,
        fieldSelector,
        resourceVersion: metadata.resourceVersion,
        signal,
      })) {
        if (type === "DELETED") yield undefined;
        else if (type !== "BOOKMARK") yield object as ApiObject;
      }
    } catch (error) {
      if (!isStatus(error, "Expired", "Gone")) throw error;
    }
    if (signal.aborted) return;
  }
}
