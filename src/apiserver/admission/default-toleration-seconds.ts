import { type Pod, resources } from "#kinds";
import type { AdmissionPlugin } from "../ports.ts";
import { isAbout, objectOf } from "./support.ts";

/** Seconds that a pod stays on a node that is not ready or not reachable. */
const SECONDS = 300;
const KEYS = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/**
 * Pods that say nothing about it tolerate a node that is lost for five minutes.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#defaulttolerationseconds
 */
export function createDefaultTolerationSeconds(): AdmissionPlugin {
  return {
    name: "DefaultTolerationSeconds",
    handles: (attributes) =>
      (attributes.operation === "CREATE" || attributes.operation === "UPDATE") && isAbout(attributes, resources.pods),
    admit(attributes) {
      const { spec } = objectOf<Pod>(attributes);
      if (!spec) return;
      const tolerations = spec.tolerations ?? [];
      const missing = KEYS.filter(
        (key) =>
          !tolerations.some((one) => (one.key === key || !one.key) && (one.effect === "NoExecute" || !one.effect)),
      );
      if (missing.length === 0) return;
      spec.tolerations = [
        ...tolerations,
        ...missing.map((key) => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: SECONDS })),
      ];
    },
  };
}
