import type { KindRules } from "./strategy/rules.ts";

/** The rules of built-in kinds by `group/kind`; kinds without an entry have only what all kinds share. */
export const builtInRules: Readonly<Record<string, KindRules>> = {};
