import type { Context } from "./context.ts";
import { destroy, stopSandbox } from "./sandboxes.ts";

/** Removes everything that this instance ever made, known or leaked. */
export async function purge(context: Context): Promise<void> {
  await Promise.all([...context.sandboxes.all.values()].map((record) => stopSandbox(context, record)));
  for (const record of [...context.sandboxes.all.values()])
    await context.sandboxLock.run(record.id, () => destroy(context, record));
  await context.network.purge();
  await context.cgroups.remove(context.cgroupParent);
  for (const root of context.paths.roots) await context.mounter.removeTree(root);
}
