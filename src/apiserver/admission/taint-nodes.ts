import { type Node, resources } from "#kinds";
import type { AdmissionPlugin } from "../ports.ts";
import { isAbout, objectOf } from "./support.ts";

const NOT_READY = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };

/**
 * A new node takes no pods before it is ready.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#taintnodesbycondition
 */
export function createTaintNodesByCondition(): AdmissionPlugin {
  return {
    name: "TaintNodesByCondition",
    handles: (attributes) => attributes.operation === "CREATE" && isAbout(attributes, resources.nodes),
    admit(attributes) {
      const node = objectOf<Node>(attributes);
      const taints = node.spec?.taints ?? [];
      if (taints.some(({ key, effect }) => key === NOT_READY.key && effect === NOT_READY.effect)) return;
      node.spec = { ...node.spec, taints: [...taints, { ...NOT_READY }] };
    },
  };
}
