import type { DeepReadonly } from "#base";
import type { Container, PodSpec } from "#kinds";

/** A pod, or what a template would make. */
export interface Subject {
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: DeepReadonly<PodSpec>;
}

export interface Violation {
  readonly reason: string;
  readonly detail: string;
}

export interface Check {
  readonly id: string;
  /** By the minor version since which it is so. */
  readonly since: readonly (readonly [minor: number, (subject: Subject) => Violation | undefined])[];
  /** Id of the baseline check that this restricted one takes the place of. */
  readonly replaces?: string;
}

export type AnyContainer = DeepReadonly<Container>;

/** In the order of messages: init containers, containers, ephemeral ones. */
export const containersOf = ({ spec }: Subject): readonly AnyContainer[] => [
  ...(spec.initContainers ?? []),
  ...(spec.containers ?? []),
  ...((spec.ephemeralContainers ?? []) as readonly AnyContainer[]),
];

export const namesWhere = (subject: Subject, bad: (container: AnyContainer) => boolean): string[] =>
  containersOf(subject)
    .filter(bad)
    .map(({ name }) => name);

export const plural = (word: string, count: number): string => (count === 1 ? word : `${word}s`);
export const quoted = (texts: readonly string[]): string => texts.map((text) => `"${text}"`).join(", ");
/** `containers "a", "b"` */
export const named = (word: string, names: readonly string[]): string =>
  `${plural(word, names.length)} ${quoted(names)}`;
export const sortedSet = (texts: readonly (string | undefined)[]): string[] =>
  [...new Set(texts.map((text) => text ?? ""))].sort();

/** `pod and containers "a", "b"`: who sets something forbidden. Empty when nobody does. */
export function setters(pod: boolean, containers: readonly string[]): string {
  return [...(pod ? ["pod"] : []), ...(containers.length > 0 ? [named("container", containers)] : [])].join(" and ");
}

export const violation = (reason: string, detail: string): Violation => ({ reason, detail });
/** Pods in a user namespace of their own (`hostUsers: false`) may be root in it. */
export const unlessOwnUsers =
  (check: (subject: Subject) => Violation | undefined) =>
  (subject: Subject): Violation | undefined =>
    subject.spec.hostUsers === false ? undefined : check(subject);
/** Fields that mean nothing on Windows are not asked for there. */
export const unlessWindows =
  (check: (subject: Subject) => Violation | undefined) =>
  (subject: Subject): Violation | undefined =>
    subject.spec.os?.name === "windows" ? undefined : check(subject);
