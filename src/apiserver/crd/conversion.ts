import type { CustomResourceDefinition, KindInfo } from "#kinds";

/** Gives what converts the objects of a definition between its versions; undefined where only their `apiVersion` changes. */
export interface Conversions {
  converterOf(definition: CustomResourceDefinition): KindInfo["convert"] | undefined;
}
