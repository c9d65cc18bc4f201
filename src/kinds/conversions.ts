import { fromV1, toV1 } from "./autoscaling/convert.ts";
import { eventsEventFields, fromEventsEvent, toEventsEvent } from "./core/convert-event.ts";
import type { EventsEvent } from "./generated/types.ts";
import type { ApiObject } from "./object.ts";
import type { Column, Strategy } from "./scheme.ts";

/** How objects of a version that isn't stored become those of the version that is, and back. Neither changes its argument. */
export interface Conversion {
  readonly storage: { readonly group: string; readonly resource: string; readonly version: string };
  toStorage(object: ApiObject): ApiObject;
  fromStorage(object: ApiObject): ApiObject;
  /** Field selectors, where they have other names than the stored version's. */
  fieldsOf?(object: ApiObject): Record<string, string>;
}

const convert = <T>(fn: (object: T) => unknown): ((object: ApiObject) => ApiObject) =>
  fn as unknown as (object: ApiObject) => ApiObject;

/** By `group/version/kind` of the version that isn't stored. */
export const conversions: Readonly<Record<string, Conversion>> = {
  "autoscaling/v1/HorizontalPodAutoscaler": {
    storage: { group: "autoscaling", resource: "horizontalpodautoscalers", version: "v2" },
    toStorage: convert(fromV1),
    fromStorage: convert(toV1),
  },
  "events.k8s.io/v1/Event": {
    storage: { group: "", resource: "events", version: "v1" },
    toStorage: convert(fromEventsEvent),
    fromStorage: convert(toEventsEvent),
    fieldsOf: (object) => eventsEventFields(object as unknown as EventsEvent),
  },
};

/**
 * The strategy of the stored version, for objects of the other one: they are converted, handled and converted back, so that
 * both versions follow the same rules. `setDefaults` is the other version's own.
 */
export function convertedStrategy(
  strategy: Strategy,
  conversion: Conversion,
  setDefaults: (object: ApiObject) => void,
): Strategy {
  const change = (object: ApiObject, fn: (stored: ApiObject) => void) => {
    const stored = conversion.toStorage(object);
    fn(stored);
    const back = conversion.fromStorage(stored);
    for (const name of Object.keys(object)) delete object[name];
    Object.assign(object, back);
  };
  return {
    ...strategy,
    setDefaults,
    prepareForCreate: (object) => change(object, (stored) => strategy.prepareForCreate(stored)),
    prepareForUpdate: (object, old, subresource) =>
      change(object, (stored) => strategy.prepareForUpdate(stored, conversion.toStorage(old), subresource)),
    validate: (object) => strategy.validate(conversion.toStorage(object)),
    validateUpdate: (object, old, subresource) =>
      strategy.validateUpdate(conversion.toStorage(object), conversion.toStorage(old), subresource),
    warnings: (object, old) => strategy.warnings(conversion.toStorage(object), old && conversion.toStorage(old)),
  };
}

/** The columns of the stored version, for objects of the other one. */
export function convertedColumns(columns: readonly Column[], conversion: Conversion): Column[] {
  return columns.map((column) => ({
    ...column,
    cell: (object: ApiObject, now: number) => column.cell(conversion.toStorage(object), now),
  }));
}
