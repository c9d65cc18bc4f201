import type { StoredObject, StoreObject } from "./port.ts";

/** A value with its bytes. Whichever of both was not given is made when it is first asked for. */
export class Entry implements StoredObject {
  readonly key: string;
  readonly revision: number;
  readonly created: number;
  #object: StoreObject | undefined;
  #json: Buffer | undefined;

  constructor(key: string, revision: number, created: number, value: { object: StoreObject } | { json: Buffer }) {
    this.key = key;
    this.revision = revision;
    this.created = created;
    if ("object" in value) this.#object = value.object;
    else this.#json = value.json;
  }

  get object(): StoreObject {
    this.#object ??= JSON.parse(this.#json!.toString("utf8")) as StoreObject;
    return this.#object;
  }

  json(): Buffer {
    this.#json ??= Buffer.from(JSON.stringify(this.#object));
    return this.#json;
  }
}
