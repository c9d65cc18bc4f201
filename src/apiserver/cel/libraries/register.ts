import type { Environment } from "@marcbachmann/cel-js";

/** A value of a type of the Kubernetes libraries, compared by its text. */
export abstract class TextValue {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Functions by signature; all of them are synchronous. */
export function functions(env: Environment, table: Readonly<Record<string, (...args: never[]) => unknown>>): void {
  for (const [signature, handler] of Object.entries(table))
    env.registerFunction(signature, { handler: handler as (...args: unknown[]) => unknown, async: false });
}

/** A type whose values are compared with `equal`. */
export function comparableType<T>(
  env: Environment,
  name: string,
  ctor: new (...args: never[]) => T,
  equal: (a: T, b: T) => boolean,
): void {
  env.registerType(name, ctor as unknown as new () => object);
  env.registerOperator(`${name} == ${name}`, equal as (left: unknown, right: unknown) => boolean);
}

/** A name that functions hang on, as `ip` in `ip.isCanonical(…)`. */
export function namespace(env: Environment, name: string, type: string): void {
  const ctor = { [type]: class {} }[type]!;
  env.registerType(type, ctor);
  env.registerConstant(name, type, new ctor());
}
