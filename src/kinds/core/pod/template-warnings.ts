import type { ObjectMeta, PodTemplateSpec } from "../../generated/types.ts";
import { isDNS1123Label } from "../../validation/names.ts";
import { podSpecWarnings } from "./warnings.ts";

interface Templated {
  metadata: ObjectMeta;
  spec?: { template?: PodTemplateSpec };
}

/** What is warned of when an object with a template is created. */
export function templateWarnings({ spec }: Templated, old: Templated | undefined): string[] {
  const { template } = spec ?? {};
  return old || !template?.spec ? [] : podSpecWarnings(template.spec, template.metadata, "spec.template.");
}

/** The same of objects whose pods are named after them. */
export function namedTemplateWarnings(object: Templated, old: Templated | undefined): string[] {
  const texts = old ? [] : isDNS1123Label(object.metadata.name);
  const why =
    "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended";
  const ofName = texts.length > 0 ? [`metadata.name: ${why}: [${texts.join(" ")}]`] : [];
  return [...ofName, ...templateWarnings(object, old)];
}
