import type { FieldError } from "#kinds";

export type Level = "privileged" | "baseline" | "restricted";

/** What pods of a namespace are held against: a level as it was in a minor version. */
export interface LevelVersion {
  readonly level: Level;
  /** `latest` or `v1.<minor>`. */
  readonly version: string;
}

export interface Policy {
  readonly enforce: LevelVersion;
  readonly audit: LevelVersion;
  readonly warn: LevelVersion;
}

const PREFIX = "pod-security.kubernetes.io/";
const LEVELS: readonly Level[] = ["privileged", "baseline", "restricted"];
const FREE: LevelVersion = { level: "privileged", version: "latest" };

/** `restricted:latest` */
export const policyText = ({ level, version }: LevelVersion): string => `${level}:${version}`;

export const isStricter = (a: Level, b: Level): boolean => LEVELS.indexOf(a) > LEVELS.indexOf(b);

/** The policy that a namespace's labels ask for. What can't be read is `restricted` where it refuses, else nothing. */
export function policyOf(labels: Readonly<Record<string, string>> | undefined): {
  policy: Policy;
  errors: FieldError[];
} {
  const errors: FieldError[] = [];
  const invalid = (label: string, value: string, why: string) =>
    void errors.push({
      field: `metadata.labels[${label}]`,
      reason: "FieldValueInvalid",
      message: `Invalid value: ${JSON.stringify(value)}: ${why}`,
    });
  const read = (mode: keyof Policy, otherwise: Level): LevelVersion => {
    const level = labels?.[PREFIX + mode];
    const version = labels?.[`${PREFIX}${mode}-version`];
    const known = LEVELS.find((one) => one === level);
    if (level !== undefined && !known) invalid(PREFIX + mode, level, `must be one of ${LEVELS.join(", ")}`);
    const readable = version === undefined || version === "latest" || /^v1\.(\d|[1-9]\d*)$/.test(version);
    if (!readable) invalid(`${PREFIX}${mode}-version`, version, 'must be "latest" or "v1.x"');
    return {
      level: level === undefined ? FREE.level : (known ?? otherwise),
      version: version !== undefined && readable ? version : FREE.version,
    };
  };
  const enforce = read("enforce", "restricted");
  const audit = read("audit", "privileged");
  let warn = read("warn", "privileged");
  const readableEnforce = LEVELS.some((one) => one === labels?.[`${PREFIX}enforce`]);
  // who is refused is warned too, of the workload that would be
  if (labels?.[`${PREFIX}warn`] === undefined && readableEnforce && isStricter(enforce.level, warn.level)) {
    const own = labels?.[`${PREFIX}warn-version`] !== undefined;
    warn = { level: enforce.level, version: own ? warn.version : enforce.version };
  }
  return { policy: { enforce, audit, warn }, errors };
}
