import type { Context } from "./context.ts";
import { destroy, stopSandbox } from "./sandboxes.ts";
import { findMonitors } from "./strays.ts";
import { signalProcess } from "./sys/process.ts";

/** Removes everything that this instance ever made, known or leaked. */
export async function purge(context: Context): Promise<void> {
  await Promise.all([...context.sandboxes.all.values()].map((record) => stopSandbox(context, record)));
  for (const record of [...context.sandboxes.all.values()])
    await context.sandboxLock.run(record.id, () => destroy(context, record));
  await context.network.purge();
  for (const monitor of findMonitors(context).values()) signalProcess(context.libc, monitor, 9);
  await context.cgroups.remove(context.cgroupParent);
  for (const root of context.paths.roots) await context.mounter.removeTree(root);
}
