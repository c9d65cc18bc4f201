import { EngineError } from "../../errors.ts";
import type { SecurityConfig } from "../../port.ts";

export interface ResolvedUser {
  readonly uid: number;
  readonly gid: number;
  /** The primary group first, so that no process gains by leaving it out. */
  readonly supplementalGroups: readonly number[];
  readonly home: string;
}

interface PasswdEntry {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

/**
 * Who the container's process is: the security context wins over the image's USER (`name`, `uid`, each with `:group`), names are
 * looked up in the image's own files. `Merge` adds the memberships of /etc/group, `Strict` does not (KEP-3619).
 * @throws EngineError `invalid-config` for a name that the image does not know
 */
export function resolveUser(
  imageUser: string,
  security: SecurityConfig,
  files: { passwd: string; group: string },
): ResolvedUser {
  const entries = parsePasswd(files.passwd);
  const [imageName = "", imageGroup = ""] = imageUser.split(":");
  const wanted =
    security.runAsUser !== undefined ? String(security.runAsUser) : (security.runAsUsername ?? (imageName || "0"));
  const entry = findEntry(entries, wanted);
  if (!entry && !/^\d+$/.test(wanted))
    throw new EngineError("invalid-config", `unable to find user ${wanted}: no matching entries in passwd file`);
  const uid = entry?.uid ?? Number(wanted);
  const ofImage = security.runAsUser === undefined && security.runAsUsername === undefined;
  const gid =
    security.runAsGroup ?? (ofImage && imageGroup !== "" ? findGroup(files.group, imageGroup) : (entry?.gid ?? 0));
  const memberships = entry && security.supplementalGroupsPolicy !== "Strict" ? groupsOf(files.group, entry.name) : [];
  return {
    uid,
    gid,
    supplementalGroups: [...new Set([gid, ...security.supplementalGroups, ...memberships])],
    home: entry?.home || "/",
  };
}

function findEntry(entries: readonly PasswdEntry[], wanted: string): PasswdEntry | undefined {
  return (
    entries.find((entry) => entry.name === wanted) ??
    (/^\d+$/.test(wanted) ? entries.find((entry) => entry.uid === Number(wanted)) : undefined)
  );
}

function parsePasswd(text: string): PasswdEntry[] {
  return text.split("\n").flatMap((line) => {
    const [name, , uid, gid, , home] = line.split(":");
    return name && uid && gid && /^\d+$/.test(uid) && /^\d+$/.test(gid)
      ? [{ name, uid: Number(uid), gid: Number(gid), home: home ?? "/" }]
      : [];
  });
}

function parseGroup(text: string): { name: string; gid: number; members: string[] }[] {
  return text.split("\n").flatMap((line) => {
    const [name, , gid, members = ""] = line.split(":");
    return name && gid && /^\d+$/.test(gid)
      ? [{ name, gid: Number(gid), members: members.split(",").map((member) => member.trim()) }]
      : [];
  });
}

function findGroup(text: string, wanted: string): number {
  const found = parseGroup(text).find((group) => group.name === wanted);
  if (found) return found.gid;
  if (/^\d+$/.test(wanted)) return Number(wanted);
  throw new EngineError("invalid-config", `unable to find group ${wanted}: no matching entries in group file`);
}

function groupsOf(text: string, name: string): number[] {
  return parseGroup(text).flatMap((group) => (group.members.includes(name) ? [group.gid] : []));
}
