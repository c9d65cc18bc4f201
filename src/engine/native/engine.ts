import { EngineError } from "../errors.ts";
import type { ContainerStatus, Engine, EngineEvent, EngineInfo, SandboxStatus } from "../port.ts";
import * as containers from "./containers.ts";
import type { Context } from "./context.ts";
import { pauseEnded } from "./pause.ts";
import { purge } from "./purge.ts";
import type { ContainerRecord, SandboxRecord } from "./records.ts";
import * as sandboxes from "./sandboxes.ts";
import { attach } from "./streams/attach.ts";
import { connect } from "./streams/connect.ts";
import { exec, execSync } from "./streams/exec.ts";
import { reopenLog } from "./streams/log.ts";

/** The port's verbs over one context. `listeners` are what `context.emit` calls. */
export function engineOver(
  context: Context,
  info: EngineInfo,
  listeners: Set<(event: EngineEvent) => void>,
  close: () => Promise<void>,
): Engine {
  const container = (id: string): ContainerRecord =>
    found(context.containers.all.get(id), `container ${id} is not known`);
  const sandbox = (id: string): SandboxRecord => found(context.sandboxes.all.get(id), `sandbox ${id} is not known`);
  const locked = <T>(sandboxId: string, work: () => Promise<T>) => context.sandboxLock.run(sandboxId, work);
  listeners.add((event) => {
    const ended = event.type === "container-exited" ? context.containers.all.get(event.containerId ?? "") : undefined;
    if (ended?.isPause) pauseEnded(context, ended.sandboxId);
  });
  return {
    info,
    images: context.images,
    mounts: context.mounter,
    runSandbox: (config) => sandboxes.runSandbox(context, config),
    async stopSandbox(id) {
      const record = context.sandboxes.all.get(id);
      if (record) await sandboxes.stopSandbox(context, record);
    },
    async removeSandbox(id) {
      const record = context.sandboxes.all.get(id);
      if (record) await sandboxes.removeSandbox(context, record);
    },
    sandboxes: (): readonly SandboxStatus[] => [...context.sandboxes.all.values()].filter((record) => record.complete),
    createContainer: (sandboxId, config) =>
      locked(sandboxId, async () => {
        const record = sandbox(sandboxId);
        if (record.state !== "ready") throw new EngineError("sandbox-failed", `sandbox ${sandboxId} is not ready`);
        return (await containers.createContainer(context, record, config)).id;
      }),
    startContainer: async (id) =>
      locked(container(id).sandboxId, () => containers.startContainer(context, container(id))),
    async stopContainer(id, options) {
      const record = context.containers.all.get(id);
      if (!record) return;
      await locked(record.sandboxId, async () => {}); // a start that is under way comes first
      await containers.stopContainer(context, context.containers.all.get(id) ?? record, options);
    },
    signalContainer: async (id, signal) => containers.signalContainer(context, container(id), signal),
    async removeContainer(id) {
      const record = context.containers.all.get(id);
      if (!record) return;
      await locked(record.sandboxId, async () => {});
      await containers.removeContainer(context, context.containers.all.get(id) ?? record);
    },
    containers: (): readonly ContainerStatus[] =>
      [...context.containers.all.values()].filter((record) => record.complete && !record.isPause),
    container: (id) => context.containers.all.get(id),
    updateContainer: async (id, resources) =>
      locked(container(id).sandboxId, () => containers.updateContainer(context, container(id), resources)),
    updateSandbox: (id, resources) =>
      locked(id, async () => {
        const record = sandbox(id);
        context.cgroups.update(record.cgroup, resources);
        context.sandboxes.change(id, {
          config: { ...record.config, resources: { ...record.config.resources, ...resources } },
        });
      }),
    stats: async (id) => context.cgroups.stats(running(container(id)).cgroup),
    reopenLog: async (id) => reopenLog(context, running(container(id))),
    exec: async (id, options) => exec(context, running(container(id)), options),
    execSync: async (id, options) => execSync(context, running(container(id)), options),
    attach: async (id, options) => attach(context, running(container(id)), options),
    connect: async (id, port, host) => connect(context, sandbox(id), port, host),
    onEvent(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    purge: () => purge(context),
    [Symbol.asyncDispose]: close,
  };
}

function found<T>(value: T | undefined, message: string): T {
  if (value === undefined) throw new EngineError("not-found", message);
  return value;
}

function running(record: ContainerRecord): ContainerRecord {
  if (record.state !== "running") throw new EngineError("not-running", `container ${record.id} is not running`);
  return record;
}
