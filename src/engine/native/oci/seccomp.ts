import { arch } from "node:os";

/** A seccomp profile as Docker and the kubelet's `localhostProfile` files have it. */
export interface DockerSeccompProfile {
  readonly defaultAction: string;
  readonly defaultErrnoRet?: number;
  readonly architectures?: readonly string[];
  readonly archMap?: readonly { readonly architecture: string; readonly subArchitectures?: readonly string[] | null }[];
  readonly flags?: readonly string[];
  readonly listenerPath?: string;
  readonly syscalls?: readonly DockerSeccompRule[];
}

export interface DockerSeccompRule {
  readonly names?: readonly string[];
  readonly name?: string;
  readonly action: string;
  readonly errnoRet?: number;
  readonly args?:
    | readonly { readonly index: number; readonly value: number; readonly valueTwo?: number; readonly op: string }[]
    | null;
  readonly includes?: SeccompCondition;
  readonly excludes?: SeccompCondition;
}

interface SeccompCondition {
  readonly caps?: readonly string[];
  readonly arches?: readonly string[];
  readonly minKernel?: string;
}

/** `linux.seccomp` of an OCI config: the profile's rules whose conditions hold for these capabilities and this machine. */
export function seccompFor(
  profile: DockerSeccompProfile,
  capabilities: readonly string[],
  machine: { arch: string; kernel: string },
): Record<string, unknown> {
  const holds = (rule: DockerSeccompRule) =>
    matches(rule.includes, capabilities, machine, true) &&
    !(rule.excludes !== undefined && matches(rule.excludes, capabilities, machine, false));
  return {
    defaultAction: profile.defaultAction,
    ...(profile.defaultErrnoRet === undefined ? {} : { defaultErrnoRet: profile.defaultErrnoRet }),
    architectures: architecturesOf(profile, machine.arch),
    ...(profile.flags === undefined ? {} : { flags: profile.flags }),
    syscalls: (profile.syscalls ?? []).filter(holds).map((rule) => ({
      names: rule.names ?? (rule.name === undefined ? [] : [rule.name]),
      action: rule.action,
      ...(rule.errnoRet === undefined ? {} : { errnoRet: rule.errnoRet }),
      ...(rule.args?.length ? { args: rule.args } : {}),
    })),
  };
}

/** Node's name of this processor in a profile's `arches` (Go's names) and `archMap` (libseccomp's names). */
const MACHINES: Readonly<Record<string, { go: string; seccomp: string }>> = {
  x64: { go: "amd64", seccomp: "SCMP_ARCH_X86_64" },
  arm64: { go: "arm64", seccomp: "SCMP_ARCH_AARCH64" },
};

/** This machine, for `seccompFor`. */
export const thisArch: string = arch();

function architecturesOf(profile: DockerSeccompProfile, machine: string): readonly string[] {
  if (profile.archMap === undefined) return profile.architectures ?? [];
  const mine = profile.archMap.find((entry) => entry.architecture === MACHINES[machine]?.seccomp);
  return mine ? [mine.architecture, ...(mine.subArchitectures ?? [])] : [];
}

/** Includes demand every condition that is given; an exclusion holds as soon as one of its conditions does. */
function matches(
  condition: SeccompCondition | undefined,
  capabilities: readonly string[],
  machine: { arch: string; kernel: string },
  every: boolean,
): boolean {
  const results: boolean[] = [];
  if (condition?.caps?.length) {
    const has = (name: string) => capabilities.includes(name);
    results.push(every ? condition.caps.every(has) : condition.caps.some(has));
  }
  if (condition?.arches?.length) results.push(condition.arches.includes(MACHINES[machine.arch]?.go ?? ""));
  if (condition?.minKernel) results.push(atLeast(machine.kernel, condition.minKernel));
  return every ? results.every(Boolean) : results.some(Boolean);
}

/** `6.1.0-13-amd64` is at least `4.8`. */
function atLeast(kernel: string, least: string): boolean {
  const [a = 0, b = 0] = kernel.split(/[.-]/).map(Number);
  const [x = 0, y = 0] = least.split(".").map(Number);
  return a > x || (a === x && b >= y);
}
