import { createHash, randomBytes, timingSafeEqual, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "#base";
import { ADMIN, type TokenAuthenticator, writePrivateFile } from "#apiserver";

/**
 * The token by which programs of another host reach an instance as its admin: `slim1.<print of the certificate authority>.<secret>`.
 * It tells the client whom to trust, and the server who asks.
 */
const PREFIX = "slim1.";

const pathOf = (dataDir: string) => join(dataDir, "host-token");

export function readHostToken(dataDir: string): string | undefined {
  try {
    return readFileSync(pathOf(dataDir), "utf8").trim() || undefined;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** Makes a new one; the one before is worth nothing from then on. */
export function renewHostToken(dataDir: string, caCertificate: string): string {
  const print = createHash("sha256").update(new X509Certificate(caCertificate).raw).digest("hex");
  const token = `${PREFIX}${print}.${randomBytes(24).toString("base64url")}`;
  writePrivateFile(pathOf(dataDir), `${token}\n`);
  return token;
}

/** Accepts the token that stands in the file now. */
export function createHostTokens(dataDir: string): TokenAuthenticator {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return {
    authenticate(token) {
      if (!token.startsWith(PREFIX)) return undefined;
      const known = readHostToken(dataDir);
      return known !== undefined && timingSafeEqual(digest(token), digest(known)) ? ADMIN : undefined;
    },
  };
}
