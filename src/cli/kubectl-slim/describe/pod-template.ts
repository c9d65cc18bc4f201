import type { ApiObject, PodTemplateSpec, Toleration, TopologySpreadConstraint } from "#kinds";
import { writeContainers } from "./containers.ts";
import { annotationLines, DescribeWriter, pairsLines } from "./writer.ts";
import { writeVolumes } from "./volumes.ts";

/** What stands below `Pod Template:`. */
export function writePodTemplate(
  writer: DescribeWriter,
  template: PodTemplateSpec | undefined,
  changeCause?: string,
): void {
  if (!template) {
    writer.line(1, "<unset>");
    return;
  }
  const { metadata, spec } = template as PodTemplateSpec & { metadata?: ApiObject["metadata"] };
  writer.add(pairsLines("Labels", metadata?.labels, { indent: "  " }));
  const annotations = {
    ...metadata?.annotations,
    ...(changeCause ? { "kubernetes.io/change-cause": changeCause } : {}),
  };
  if (Object.keys(annotations).length > 0) writer.add(annotationLines(annotations, "  "));
  if (spec?.serviceAccountName) writer.line(1, `Service Account:\t${spec.serviceAccountName}`);
  if (spec?.initContainers?.length) writeContainers(writer, "Init Containers", spec.initContainers, undefined, "  ");
  writeContainers(writer, "Containers", spec?.containers ?? [], undefined, "  ");
  writeVolumes(writer, spec?.volumes ?? [], "  ");
  writeTopology(writer, spec?.topologySpreadConstraints, "  ");
  if (spec?.priorityClassName) writer.line(1, `Priority Class Name:\t${spec.priorityClassName}`);
  writer.add(pairsLines("Node-Selectors", spec?.nodeSelector, { indent: "  " }));
  writer.add(tolerationLines(spec?.tolerations, "  "));
}

/** The text of a template with its tabs, for `rollout history`. */
export function templateText(template: ApiObject, changeCause: string | undefined): string {
  const writer = new DescribeWriter(0);
  writePodTemplate(writer, template as unknown as PodTemplateSpec, changeCause);
  return writer.text();
}

export function tolerationLines(tolerations: readonly Toleration[] | undefined, indent = ""): string {
  if (!tolerations?.length) return `${indent}Tolerations:\t<none>\n`;
  const sorted = [...tolerations].sort((a, b) =>
    String(a.key ?? "") < String(b.key ?? "") ? -1 : String(a.key ?? "") > String(b.key ?? "") ? 1 : 0,
  );
  return sorted
    .map(({ key = "", operator, value, effect, tolerationSeconds }, i) => {
      let text = key;
      if (value) text += `=${value}`;
      if (effect) text += `:${effect}`;
      // a toleration that exists for all keys has nothing before
      if (operator === "Exists" && !value) text += key || effect ? " op=Exists" : "op=Exists";
      else if (operator === "Lt" || operator === "Gt") text += ` op=${operator}`;
      if (tolerationSeconds !== undefined) text += ` for ${tolerationSeconds}s`;
      return `${i === 0 ? `${indent}Tolerations:` : indent}\t${text}\n`;
    })
    .join("");
}

export function writeTopology(
  writer: DescribeWriter,
  constraints: readonly TopologySpreadConstraint[] | undefined,
  indent: string,
): void {
  if (!constraints?.length) return;
  constraints.forEach(({ topologyKey, whenUnsatisfiable, maxSkew, labelSelector }, i) => {
    const selector = Object.entries(labelSelector?.matchLabels ?? {})
      .map(([key, value]) => `${key}=${value}`)
      .join(",");
    const lead = i === 0 ? `${indent}Topology Spread Constraints:` : indent;
    writer.add(
      `${lead}\t${topologyKey}:${whenUnsatisfiable} when max skew ${maxSkew} is exceeded${selector ? ` for selector ${selector}` : ""}\n`,
    );
  });
}
