import type { KindInfo, Resource, Scheme } from "#kinds";
import type { AdmissionAttributes, Reader } from "../../ports.ts";
import { isExempt, type Place } from "./rules.ts";

export interface Matchable {
  /** Whether rules choose the place; asked once a place, not once a call. */
  covers(place: Place): boolean;
  /** Other versions of a resource count as it does (`matchPolicy: Equivalent`). */
  readonly equivalent: boolean;
}

export interface Candidate<H> {
  readonly hook: H;
  /** The version of the resource that the hook wants to see. */
  readonly kind: KindInfo;
}

/** What may have to be called, by resource and operation. A call that nothing is configured for costs one look-up. */
export interface HookIndex<H> {
  of(attributes: AdmissionAttributes): readonly Candidate<H>[];
}

/** @param compile all hooks in the order in which they are called; run again after a change of one of `sources` */
export function createHookIndex<H extends Matchable>(
  deps: { reader: Reader; scheme: Scheme },
  sources: readonly Resource<never>[],
  compile: () => readonly H[],
): HookIndex<H> {
  let hooks: readonly H[] | undefined;
  let known = new WeakMap<KindInfo, Map<string, readonly Candidate<H>[]>>();
  const forget = () => {
    hooks = undefined;
    known = new WeakMap();
  };
  for (const source of sources) deps.reader.onChange(source as unknown as Resource, forget);

  function find(place: Place): readonly Candidate<H>[] {
    if (isExempt(place.kind)) return [];
    hooks ??= compile();
    if (hooks.length === 0) return [];
    const others = equivalents(deps.scheme, place.kind);
    return hooks.flatMap((hook) => {
      if (hook.covers(place)) return [{ hook, kind: place.kind }];
      const other = hook.equivalent && others.find((kind) => hook.covers({ ...place, kind }));
      return other ? [{ hook, kind: other }] : [];
    });
  }

  return {
    of({ kind, subresource, operation }) {
      const places = known.get(kind) ?? new Map<string, readonly Candidate<H>[]>();
      const id = `${operation}/${subresource}`;
      const found = places.get(id) ?? find({ kind, subresource, operation });
      known.set(kind, places.set(id, found));
      return found;
    },
  };
}

/** The same objects in other groups and versions. */
function equivalents(scheme: Scheme, kind: KindInfo): KindInfo[] {
  const { group, resource } = kind.storage;
  return scheme.all().filter((one) => one !== kind && one.storage.group === group && one.storage.resource === resource);
}
