import type { Logger } from "#base";
import { type ApiObject, apiVersionOf, failure, type KindInfo, StatusError } from "#kinds";
import { prefixOf } from "../registry/keys.ts";
import type { Change, Store, StoredObject, StoreObject } from "#store";

/** Objects that must be converted before a call can read them; the call is begun anew then. */
class NotConverted extends StatusError {
  readonly objects: readonly StoredObject[];
  constructor(objects: readonly StoredObject[]) {
    super(failure(503, "ServiceUnavailable", "objects are not converted yet").status);
    this.objects = objects;
  }
}

/** One place for each kind: kinds come and go with their definitions. */
const views = new WeakMap<KindInfo, WeakMap<StoredObject, StoredObject>>();
const shownKinds = new WeakMap<KindInfo, KindInfo>();

/**
 * Runs a call on a store that shows a kind's objects in its own version and writes them in the stored one. Reads are synchronous
 * and webhooks are not: what a read lacks is converted, and the call runs again (nothing has been written by then).
 */
export async function withConversion<T>(
  kind: KindInfo,
  { store, logger, watches }: { store: Store; logger: Logger; watches: boolean },
  run: (kind: KindInfo, store: Store) => Promise<T>,
): Promise<T> {
  const shown = shownKinds.get(kind) ?? withOwnStorage(kind);
  shownKinds.set(kind, shown);
  const converting = createConvertingStore(kind, store, logger);
  // a watch reads the present state when it starts, after the call
  if (watches) await converting.load(store.list(prefixOf(kind)).items);
  for (;;) {
    try {
      return await run(shown, converting.store);
    } catch (error) {
      if (!(error instanceof NotConverted)) throw error;
      await converting.load(error.objects);
    }
  }
}

/** The kind as if its own version were the stored one. */
function withOwnStorage({ toStorage: _toStorage, ...kind }: KindInfo): KindInfo {
  return { ...kind, storage: { ...kind.storage, version: kind.version } };
}

function createConvertingStore(kind: KindInfo, store: Store, logger: Logger) {
  const wanted = apiVersionOf(kind);
  const stored = apiVersionOf(kind.storage);
  const known = views.get(kind) ?? new WeakMap<StoredObject, StoredObject>();
  views.set(kind, known);
  const convert = kind.convert!;

  async function load(objects: readonly StoredObject[]): Promise<void> {
    const missing = objects.filter((one) => !known.has(one));
    const converted = await convert(
      missing.map((one) => one.object as ApiObject),
      wanted,
    );
    for (const [i, one] of missing.entries()) known.set(one, viewOf(one, converted[i]!));
  }
  function shown(objects: readonly StoredObject[]): StoredObject[] {
    const missing = objects.filter((one) => !known.has(one));
    if (missing.length > 0) throw new NotConverted(missing);
    return objects.map((one) => known.get(one)!);
  }
  const one = (object: StoredObject | undefined) => object && shown([object])[0];
  async function write(
    object: StoreObject,
    act: (object: StoreObject) => Promise<StoredObject>,
  ): Promise<StoredObject> {
    const [converted] = await convert([object as ApiObject], stored);
    const written = await act(converted!);
    await load([written]);
    return known.get(written)!;
  }
  const converting: Store = {
    get revision() {
      return store.revision;
    },
    get compactedRevision() {
      return store.compactedRevision;
    },
    get: (key) => one(store.get(key)),
    latest: (key) => one(store.latest(key)),
    list(prefix, options) {
      const page = store.list(prefix, options);
      return { ...page, items: shown(page.items) };
    },
    count: (prefix) => store.count(prefix),
    create: (key, object, options) => write(object, (converted) => store.create(key, converted, options)),
    update: (key, object, revision, options) =>
      write(object, (converted) => store.update(key, converted, revision, options)),
    delete: (key, revision, object) =>
      object ? write(object, (converted) => store.delete(key, revision, converted)) : store.delete(key, revision),
    watch(prefix, since, listener) {
      let over = false;
      let chain = Promise.resolve();
      const forward = async (change: Change) => {
        const both = change.previous ? [change.current, change.previous] : [change.current];
        await load(both);
        if (!over) listener({ ...change, current: known.get(change.current)!, previous: one(change.previous) });
      };
      const subscription = store.watch(prefix, since, (change) => {
        chain = chain
          .then(() => forward(change))
          .catch((error: unknown) =>
            logger.error("an object could not be converted for a watch", { key: change.key, error }),
          );
      });
      return {
        [Symbol.dispose]() {
          over = true;
          subscription[Symbol.dispose]();
        },
      };
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  return { store: converting, load };
}

function viewOf(stored: StoredObject, object: ApiObject): StoredObject {
  let bytes: Buffer | undefined;
  return {
    key: stored.key,
    revision: stored.revision,
    created: stored.created,
    object,
    json() {
      bytes ??= Buffer.from(JSON.stringify(object));
      return bytes;
    },
  };
}
