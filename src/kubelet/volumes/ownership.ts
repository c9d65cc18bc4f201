import { constants } from "node:fs";
import { lchown, open, opendir, stat } from "node:fs/promises";
import { join } from "node:path";
import { hasCode, type Logger, messageOf } from "#base";

const READ_WRITE = 0o660;
const READ_ONLY = 0o440;
const DIRECTORY = 0o2110;

/**
 * Gives a volume to the pod's `fsGroup`: group and group permissions of everything in it, and directories whose new files
 * get the group too. With `OnRootMismatch` nothing is touched when the top is as it should be. Links are never followed. A
 * file whose owner cannot be changed is reported and passed over, as the kubelet does.
 *
 * Source: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods
 */
export async function giveToGroup(
  path: string,
  options: { group: number; readOnly: boolean; policy?: string; logger: Logger },
): Promise<void> {
  const { group, readOnly, policy, logger } = options;
  if (policy === "OnRootMismatch" && (await isAsWanted(path, group, readOnly))) return;
  await changeTree(path, group, readOnly, logger);
}

async function isAsWanted(path: string, group: number, readOnly: boolean): Promise<boolean> {
  const { gid, mode } = await stat(path);
  const wanted = (readOnly ? READ_ONLY : READ_WRITE) | DIRECTORY;
  return gid === group && (mode & wanted) === wanted;
}

async function changeTree(path: string, group: number, readOnly: boolean, logger: Logger): Promise<void> {
  const kind = await changeOne(path, group, readOnly, logger);
  if (kind !== "directory") return;
  for await (const entry of await opendir(path)) await changeTree(join(path, entry.name), group, readOnly, logger);
}

async function changeOne(
  path: string,
  group: number,
  readOnly: boolean,
  logger: Logger,
): Promise<"directory" | "other"> {
  try {
    // Through a descriptor that is no link: a container may swap files while this runs. NONBLOCK: a pipe must not hang it.
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const info = await file.stat();
    await file.chown(-1, group);
    const wanted = (readOnly ? READ_ONLY : READ_WRITE) | (info.isDirectory() ? DIRECTORY : 0);
    // Last, since chown clears set-id bits.
    if ((info.mode & wanted) !== wanted || info.isDirectory()) await file.chmod((info.mode & 0o7777) | wanted);
    return info.isDirectory() ? "directory" : "other";
  } catch (error) {
    if (hasCode(error, "ENOENT")) return "other";
    if (hasCode(error, "ELOOP", "ENXIO")) {
      await lchown(path, -1, group).catch((cause: unknown) => report(logger, path, cause));
      return "other";
    }
    report(logger, path, error);
    return "other";
  }
}

const report = (logger: Logger, path: string, error: unknown) =>
  logger.warn("cannot give a file of a volume to the pod's group", { path, error: messageOf(error) });
