import type { DeepReadonly } from "#base";
import { type Condition, type ServiceCIDR, resources } from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { copyOf, fromCache, ignoreNotFound, keyOf, timestamp, writeStatus } from "../runtime/objects.ts";
import { rangesOf } from "./ranges.ts";

const FINALIZER = "networking.k8s.io/service-cidr-finalizer";

/** Tells which ranges of Service addresses are ready, and keeps one as long as addresses of it are in use that no other has. https://kubernetes.io/docs/reference/networking/service-cidrs/ */
export function createServiceCIDRController(deps: ControllerDeps): Controller {
  const { client, clock } = deps;
  const cidrs = deps.informers.for(resources.serviceCIDRs);
  const addresses = deps.informers.for(resources.ipAddresses);

  /** An address that nothing else would hold when the range goes. */
  function orphaned({ metadata: { name }, spec }: DeepReadonly<ServiceCIDR>): string | undefined {
    const others = cidrs
      .list()
      .filter((one) => one.metadata.name !== name && !one.metadata.deletionTimestamp)
      .map((one) => rangesOf(one.spec?.cidrs));
    const own = rangesOf(spec?.cidrs);
    const kept = (address: string) => others.some((range) => range(address));
    return addresses.list().find(({ metadata }) => own(metadata.name) && !kept(metadata.name))?.metadata.name;
  }

  async function tell(cidr: DeepReadonly<ServiceCIDR>, told: Omit<Condition, "type" | "lastTransitionTime">) {
    const before = cidr.status?.conditions?.find(({ type }) => type === "Ready");
    if (before?.status === told.status && before.reason === told.reason) return;
    const ready = { type: "Ready", ...told, lastTransitionTime: timestamp(clock) };
    await writeStatus(client, resources.serviceCIDRs, cidr, { conditions: [ready] });
  }

  async function setFinalizers(cidr: DeepReadonly<ServiceCIDR>, finalizers: string[]): Promise<void> {
    const copy = copyOf(resources.serviceCIDRs, cidr);
    await ignoreNotFound(
      client.update(resources.serviceCIDRs, { ...copy, metadata: { ...copy.metadata, finalizers } }),
    );
  }

  return createController(deps, {
    name: "service-cidrs",
    concurrency: 1,
    watch({ on, enqueue }) {
      const all = () => {
        for (const cidr of cidrs.list()) enqueue(keyOf(cidr));
      };
      on(cidrs, { add: (cidr) => enqueue(keyOf(cidr)), update: (cidr) => enqueue(keyOf(cidr)), delete: all });
      on(addresses, { delete: all });
    },
    async reconcile(key) {
      const cidr = fromCache(cidrs, key);
      if (!cidr) return;
      const { deletionTimestamp, finalizers = [] } = cidr.metadata;
      if (!deletionTimestamp) {
        if (!finalizers.includes(FINALIZER)) return setFinalizers(cidr, [...finalizers, FINALIZER]);
        return tell(cidr, { status: "True", reason: "", message: "Kubernetes Service CIDR is ready" });
      }
      if (!finalizers.includes(FINALIZER)) return;
      if (orphaned(cidr) === undefined)
        return setFinalizers(
          cidr,
          finalizers.filter((one) => one !== FINALIZER),
        );
      const message =
        "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";
      return tell(cidr, { status: "False", reason: "Terminating", message });
    },
  });
}
