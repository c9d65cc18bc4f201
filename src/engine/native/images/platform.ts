import { EngineError } from "../../errors.ts";

/** `linux/amd64`, `linux/arm64`, `linux/arm/v7`. */
export interface Platform {
  readonly os: string;
  readonly architecture: string;
  readonly variant?: string | undefined;
}

/** From text such as `linux/arm/v7`; default: this machine, by Node's name of its architecture. */
export function parsePlatform(text: string | undefined, nodeArchitecture: string = process.arch): Platform {
  if (text === undefined) return { os: "linux", architecture: GO_NAMES[nodeArchitecture] ?? nodeArchitecture };
  const [os = "linux", architecture = "", variant] = text.split("/");
  return { os, architecture, ...(variant ? { variant } : {}) };
}

/**
 * Picks the entry for the platform: the one of the same variant, else one of no variant, else the first.
 * @throws EngineError `no-platform`, naming those that there are
 */
export function choosePlatform<T extends { readonly platform: Partial<Platform> | undefined }>(
  candidates: readonly T[],
  wanted: Platform,
  what: string,
): T {
  const fitting = candidates.filter(({ platform }) => platform && fits(platform, wanted));
  const variant = (candidate: T) => candidate.platform?.variant || BASE_VARIANT[wanted.architecture] || "";
  const asked = wanted.variant ?? BASE_VARIANT[wanted.architecture] ?? "";
  const chosen = fitting.find((candidate) => variant(candidate) === asked) ?? fitting[0];
  if (chosen) return chosen;
  const there = candidates.map(({ platform }) => (platform ? formatPlatform(platform) : "unknown"));
  const names = [...new Set(there)].join(", ") || "none";
  throw new EngineError(
    "no-platform",
    `${what}: no match for platform ${formatPlatform(wanted)} (there are: ${names})`,
  );
}

export function fits(platform: Partial<Platform>, wanted: Platform): boolean {
  if ((platform.os || "linux") !== wanted.os || normal(platform.architecture) !== wanted.architecture) return false;
  // A 32 bit ARM image for a newer core does not run on an older one; on others a variant is a wish.
  if (wanted.architecture !== "arm" || !wanted.variant || !platform.variant) return true;
  return platform.variant <= wanted.variant;
}

export function formatPlatform({ os, architecture, variant }: Partial<Platform>): string {
  return [os || "linux", normal(architecture) || "unknown", ...(variant ? [variant] : [])].join("/");
}

const GO_NAMES: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386", ppc64: "ppc64le" };
const BASE_VARIANT: Readonly<Record<string, string>> = { amd64: "v1", arm64: "v8" };

function normal(architecture: string | undefined): string {
  return { x86_64: "amd64", aarch64: "arm64" }[architecture ?? ""] ?? architecture ?? "";
}
