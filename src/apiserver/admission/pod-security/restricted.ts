import { isForbiddenSeccomp, procMount, seccompProfile } from "./baseline.ts";
import {
  type Check,
  containersOf,
  named,
  namesWhere,
  plural,
  quoted,
  setters,
  sortedSet,
  type Subject,
  unlessOwnUsers,
  unlessWindows,
  type Violation,
  violation,
} from "./check.ts";

/** What level `restricted` adds, by id. https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted */
export const restrictedChecks: readonly Check[] = [
  {
    id: "allowPrivilegeEscalation",
    since: [
      [8, privilegeEscalation],
      [25, unlessWindows(privilegeEscalation)],
    ],
  },
  {
    id: "capabilities_restricted",
    since: [
      [22, capabilities],
      [25, unlessWindows(capabilities)],
    ],
    replaces: "capabilities_baseline",
  },
  { id: "procMount_restricted", since: [[35, procMount]], replaces: "procMount" },
  { id: "restrictedVolumes", since: [[0, volumes]], replaces: "hostPathVolumes" },
  {
    id: "runAsNonRoot",
    since: [
      [0, runAsNonRoot],
      [35, unlessOwnUsers(runAsNonRoot)],
    ],
  },
  {
    id: "runAsUser",
    since: [
      [23, runAsUser],
      [35, unlessOwnUsers(runAsUser)],
    ],
  },
  {
    id: "seccompProfile_restricted",
    since: [
      [19, seccomp],
      [25, unlessWindows(seccomp)],
    ],
    replaces: "seccompProfile_baseline",
  },
];

function privilegeEscalation(subject: Subject): Violation | undefined {
  const names = namesWhere(subject, ({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false);
  if (names.length === 0) return undefined;
  return violation(
    "allowPrivilegeEscalation != false",
    `${named("container", names)} must set securityContext.allowPrivilegeEscalation=false`,
  );
}

function capabilities(subject: Subject): Violation | undefined {
  const keeping = namesWhere(subject, (one) => !one.securityContext?.capabilities?.drop?.includes("ALL"));
  const forbidden = (added: readonly string[] | undefined) =>
    (added ?? []).filter((name) => name !== "NET_BIND_SERVICE");
  const adding = containersOf(subject).filter((one) => forbidden(one.securityContext?.capabilities?.add).length > 0);
  const details: string[] = [];
  if (keeping.length > 0)
    details.push(`${named("container", keeping)} must set securityContext.capabilities.drop=["ALL"]`);
  if (adding.length > 0) {
    const added = sortedSet(adding.flatMap((one) => forbidden(one.securityContext?.capabilities?.add)));
    const names = adding.map(({ name }) => name);
    details.push(`${named("container", names)} must not include ${quoted(added)} in securityContext.capabilities.add`);
  }
  return details.length > 0 ? violation("unrestricted capabilities", details.join("; ")) : undefined;
}

const VOLUMES = new Set([
  "configMap",
  "csi",
  "downwardAPI",
  "emptyDir",
  "ephemeral",
  "image",
  "persistentVolumeClaim",
  "projected",
  "secret",
]);

function volumes({ spec }: Subject): Violation | undefined {
  const typeOf = (volume: object) => Object.keys(volume).find((key) => key !== "name") ?? "unknown";
  const bad = (spec.volumes ?? []).filter((volume) => !VOLUMES.has(typeOf(volume)));
  if (bad.length === 0) return undefined;
  const types = sortedSet(bad.map(typeOf));
  const names = bad.map(({ name }) => name);
  return violation(
    "restricted volume types",
    `${named("volume", names)} ${names.length === 1 ? "uses" : "use"} ${plural("restricted volume type", types.length)} ${quoted(types)}`,
  );
}

function runAsNonRoot(subject: Subject): Violation | undefined {
  const ofPod = subject.spec.securityContext?.runAsNonRoot;
  const who = setters(
    ofPod === false,
    namesWhere(subject, (one) => one.securityContext?.runAsNonRoot === false),
  );
  if (who) return violation("runAsNonRoot != true", `${who} must not set securityContext.runAsNonRoot=false`);
  if (ofPod) return undefined;
  const silent = namesWhere(subject, (one) => one.securityContext?.runAsNonRoot === undefined);
  if (silent.length === 0) return undefined;
  return violation(
    "runAsNonRoot != true",
    `pod or ${named("container", silent)} must set securityContext.runAsNonRoot=true`,
  );
}

function runAsUser(subject: Subject): Violation | undefined {
  const names = namesWhere(subject, (one) => one.securityContext?.runAsUser === 0);
  const who = setters(subject.spec.securityContext?.runAsUser === 0, names);
  return who ? violation("runAsUser=0", `${who} must not set runAsUser=0`) : undefined;
}

function seccomp(subject: Subject): Violation | undefined {
  const bad = seccompProfile(subject);
  if (bad) return bad;
  const ofPod = subject.spec.securityContext?.seccompProfile?.type;
  if (ofPod !== undefined && !isForbiddenSeccomp(ofPod)) return undefined;
  const silent = namesWhere(subject, (one) => one.securityContext?.seccompProfile === undefined);
  if (silent.length === 0) return undefined;
  return violation(
    "seccompProfile",
    `pod or ${named("container", silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`,
  );
}
