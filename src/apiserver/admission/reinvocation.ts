import { deepClone, deepEqual } from "#base";
import type { ApiObject } from "#kinds";

/**
 * The mutating phase runs at most twice: where a webhook or a policy has changed the object, all that came before it look again,
 * of the webhooks and policies those that ask for it (`reinvocationPolicy: IfNeeded`).
 * @see https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#reinvocation-policy
 */
export class Reinvocation {
  #again = false;
  #second = false;
  readonly #rounds = new Map<string, Round>();

  /** Begins the second round where it is needed. */
  again(): boolean {
    if (this.#second || !this.#again) return false;
    this.#second = true;
    return true;
  }

  /** What one plugin has called. */
  of(plugin: string): Round {
    let round = this.#rounds.get(plugin);
    if (!round) {
      round = new Round(() => {
        this.#again = true;
      });
      this.#rounds.set(plugin, round);
    }
    round.second = this.#second;
    return round;
  }
}

class Round {
  second = false;
  readonly #demand: () => void;
  readonly #called = new Set<string>();
  readonly #due = new Set<string>();
  #output: ApiObject | undefined;

  constructor(demand: () => void) {
    this.#demand = demand;
  }

  /** Before the plugin calls: what others changed since makes it look again. */
  begin(object: ApiObject | undefined): void {
    if (this.second && !deepEqual(object, this.#output)) this.#makeDue();
  }

  end(object: ApiObject | undefined): void {
    this.#output = object && deepClone<ApiObject>(object);
  }

  isDue(id: string): boolean {
    return !this.second || this.#due.has(id);
  }

  /** `id` was called. */
  called(id: string, outcome: { changed: boolean; reinvocable: boolean }): void {
    if (outcome.changed) {
      this.#makeDue();
      this.#demand();
    }
    if (outcome.reinvocable) this.#called.add(id);
  }

  #makeDue(): void {
    for (const id of this.#called) this.#due.add(id);
    this.#called.clear();
  }
}
