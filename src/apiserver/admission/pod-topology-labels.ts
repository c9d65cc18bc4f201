import { type Pod, resources } from "#kinds";
import type { AdmissionPlugin, Reader } from "../ports.ts";
import { isAbout, objectOf } from "./support.ts";

const LABELS = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/**
 * Pods carry zone and region of the node that they are bound to.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#podtopologylabels
 */
export function createPodTopologyLabels({ reader }: { reader: Reader }): AdmissionPlugin {
  return {
    name: "PodTopologyLabels",
    handles: (attributes) =>
      attributes.operation === "CREATE" &&
      (isAbout(attributes, resources.pods) || isAbout(attributes, resources.pods, "binding")),
    admit(attributes) {
      const node =
        attributes.subresource === "binding" ? boundTo(objectOf(attributes)) : objectOf<Pod>(attributes).spec?.nodeName;
      if (!node) return;
      const labels = reader.get(resources.nodes, undefined, node)?.metadata.labels ?? {};
      const found = Object.entries(labels).filter(([key]) => LABELS.includes(key));
      if (found.length === 0) return;
      const { metadata } = attributes.object!;
      metadata.labels = { ...metadata.labels, ...Object.fromEntries(found) };
    },
  };
}

function boundTo({ target }: { target?: { kind?: string; name?: string } }): string | undefined {
  return target?.kind === "Node" ? target.name : undefined;
}
