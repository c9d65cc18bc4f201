import type { UserInfo } from "#kinds";

const PREFIX = "system:node:";

/** The node that acts: its name, "" for one that can't be told; undefined for other users. */
export function nodeOf(user: UserInfo): string | undefined {
  if (!user.username.startsWith(PREFIX) || !user.groups.includes("system:nodes")) return undefined;
  return user.username.slice(PREFIX.length);
}
