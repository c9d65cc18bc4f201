import type { ApiObject } from "./object.ts";

/** How objects of a version that isn't stored become those of the version that is, and back. */
export interface Conversion {
  readonly storage: { readonly group: string; readonly resource: string; readonly version: string };
  toStorage(object: ApiObject): ApiObject;
  fromStorage(object: ApiObject): ApiObject;
}

/** By `group/version/kind` of the version that isn't stored. */
export const conversions: Readonly<Record<string, Conversion>> = {};
