import type { ApiObject } from "../object.ts";
import type { Column } from "../scheme.ts";
import type { FieldError } from "../status-error.ts";
import type { NameCheck } from "../validation/names.ts";

/**
 * What is special about one built-in kind; `createStrategy` adds what all kinds share (shape, metadata, status and generation
 * handling). `T` is the generated type: rules run on normalized objects, so shapes hold.
 */
export interface KindRules<T extends ApiObject = ApiObject> {
  /** Default: DNS subdomain. */
  readonly nameCheck?: NameCheck;
  /** Objects have a generation, which grows with every change outside metadata and status. */
  readonly generation?: "spec" | undefined;
  /** PUT may create. */
  readonly allowCreateOnUpdate?: boolean;
  /** PUT without resourceVersion is refused. */
  readonly conditionalUpdateOnly?: boolean;
  /** `prepareForUpdate` itself restores what a subresource may not change of the status. */
  readonly restoresStatus?: boolean;
  /** A create may set the status (nodes). */
  readonly statusOnCreate?: boolean;
  /** `orphan` where that is what a deletion without a policy does. */
  readonly defaultDeletionPropagation?: "Background" | "Orphan";
  defaults?(object: T): void;
  prepareForCreate?(object: T): void;
  prepareForUpdate?(object: T, old: T, subresource: string): void;
  validate?(object: T): FieldError[];
  /** Beyond metadata; the default is `validate` of the new object. */
  validateUpdate?(object: T, old: T, subresource: string): FieldError[];
  warnings?(object: T, old: T | undefined): string[];
  gracePeriodSeconds?(object: T, requested: number | undefined): number;
  selectableFields?(object: T): Record<string, string>;
  readonly columns?: readonly Column[];
}

/** Forgets the type parameter, so that rules of all kinds fit one table. */
export function rules<T extends ApiObject>(of: KindRules<T>): KindRules {
  return of as unknown as KindRules;
}
