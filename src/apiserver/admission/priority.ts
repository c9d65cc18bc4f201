import { type Pod, type PriorityClass, resources } from "#kinds";
import type { AdmissionPlugin, Reader } from "../ports.ts";
import { isAbout, objectOf, refuse } from "./support.ts";

/**
 * Gives pods the number and preemption policy of their priority class, or of the default one.
 * @see https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
 */
export function createPriority({ reader }: { reader: Reader }): AdmissionPlugin {
  return {
    name: "Priority",
    handles: (attributes) => attributes.operation === "CREATE" && isAbout(attributes, resources.pods),
    admit(attributes) {
      const { spec } = objectOf<Pod>(attributes);
      if (!spec) return;
      let found: PriorityClass | undefined;
      if (spec.priorityClassName) {
        found = reader.get(resources.priorityClasses, undefined, spec.priorityClassName);
        if (!found) throw refuse(attributes, `no PriorityClass with name ${spec.priorityClassName} was found`);
      } else {
        // of several defaults the lowest counts
        found = reader
          .list(resources.priorityClasses)
          .filter((one) => one.globalDefault)
          .sort((a, b) => (a.value ?? 0) - (b.value ?? 0))[0];
        if (found) spec.priorityClassName = found.metadata.name ?? "";
      }
      const value = found?.value ?? 0;
      if (spec.priority !== undefined && spec.priority !== value) {
        throw refuse(
          attributes,
          `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${value} from the given PriorityClass name`,
        );
      }
      spec.priority = value;
      const policy = found?.preemptionPolicy ?? "PreemptLowerPriority";
      if (spec.preemptionPolicy && spec.preemptionPolicy !== policy) {
        throw refuse(
          attributes,
          `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority admission controller computed ${policy} from the given PriorityClass name`,
        );
      }
      spec.preemptionPolicy = policy;
    },
  };
}
