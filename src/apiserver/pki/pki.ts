import { createPrivateKey as privateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { Clock } from "#base";
import { addressBytes, issueCertificate, type KeyPair, newKey, type Subject } from "./certificate.ts";
import { type Files, directoryFiles, memoryFiles } from "./files.ts";

export interface PkiOptions {
  readonly clock: Clock;
  /** DNS names by which the server is reached, besides `localhost` and those of the `kubernetes` Service. */
  readonly names?: readonly string[];
  /** Addresses by which the server is reached, besides 127.0.0.1 and ::1: the listen address, the Service address. */
  readonly ips?: readonly string[];
}

/** The keys and certificates of one instance. */
export interface Pki {
  /** PEM of the authority that signs the server's and the clients' certificates. */
  readonly caCertificate: string;
  readonly ca: KeyPair;
  readonly serving: KeyPair;
  /** `CN=kubernetes-admin, O=system:masters`. */
  readonly admin: KeyPair;
  /** `CN=system:node:<name>, O=system:nodes`; made when first asked for. */
  node(name: string): KeyPair;
  /** Authority of the certificate with which the server, as a proxy, calls aggregated API servers. */
  readonly frontProxyCa: KeyPair;
  /** `CN=front-proxy-client`; made when first asked for. */
  frontProxyClient(): KeyPair;
  /** PEM private key that signs ServiceAccount tokens (EC P-256: ES256). */
  readonly serviceAccountKey: string;
}

const DAY = 24 * 3600 * 1000;
/** The certificates live beside the authority's key, so a shorter life would protect nothing; ten years as kubeadm's CA. */
const VALIDITY = 3650 * DAY;
const RENEW_BEFORE = 365 * DAY;
/** Clients whose clock is a little behind must not find a new certificate "not yet valid". */
const BACKDATE = 5 * 60 * 1000;

export const SERVICE_NAMES: readonly string[] = [
  "kubernetes",
  "kubernetes.default",
  "kubernetes.default.svc",
  "kubernetes.default.svc.cluster.local",
];

/**
 * Reads the files of `dir` (made 0700, files 0600); makes what is absent, about to expire, signed by another authority, or
 * (the serving certificate) lacks a name. Without `dir` all is kept in memory.
 * @see https://kubernetes.io/docs/setup/best-practices/certificates/
 */
export function loadOrCreatePki(dir: string | undefined, options: PkiOptions): Pki {
  const files = dir === undefined ? memoryFiles() : directoryFiles(dir);
  const now = options.clock.now();
  const ca = authority(files, "ca", "kubernetes", now);
  const frontProxyCa = once(() => authority(files, "front-proxy-ca", "front-proxy-ca", now));
  const names = ["localhost", ...SERVICE_NAMES, ...(options.names ?? []), "127.0.0.1", "::1", ...(options.ips ?? [])];
  const nodes = new Map<string, KeyPair>();
  return {
    ca,
    caCertificate: ca.cert,
    serving: leaf(files, "apiserver", ca, { commonName: "kube-apiserver" }, now, [...new Set(names)]),
    admin: leaf(files, "admin", ca, { commonName: "kubernetes-admin", organizations: ["system:masters"] }, now),
    node(name) {
      if (!/^[a-z0-9.-]+$/.test(name)) throw new Error(`not a node name: ${JSON.stringify(name)}`);
      let pair = nodes.get(name);
      if (!pair) {
        pair = leaf(
          files,
          `node-${name}`,
          ca,
          { commonName: `system:node:${name}`, organizations: ["system:nodes"] },
          now,
        );
        nodes.set(name, pair);
      }
      return pair;
    },
    get frontProxyCa() {
      return frontProxyCa();
    },
    frontProxyClient: once(() =>
      leaf(files, "front-proxy-client", frontProxyCa(), { commonName: "front-proxy-client" }, now),
    ),
    serviceAccountKey: keyFile(files, "sa.key"),
  };
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

function keyFile(files: Files, name: string): string {
  const found = files.read(name);
  if (found?.includes("PRIVATE KEY")) return found;
  const { key } = newKey();
  files.write(name, key);
  return key;
}

function authority(files: Files, name: string, commonName: string, now: number): KeyPair {
  const found = readPair(files, name);
  if (found && remaining(found.cert, now) > RENEW_BEFORE) return found;
  const { key, publicKey } = newKey();
  const cert = issueCertificate(
    {
      subject: { commonName },
      publicKey,
      names: [commonName],
      notBefore: now - BACKDATE,
      notAfter: now + VALIDITY + DAY,
      usages: ["ca"],
    },
    { selfKey: key },
  );
  return writePair(files, name, { cert, key });
}

function leaf(
  files: Files,
  name: string,
  ca: KeyPair,
  subject: Subject,
  now: number,
  names: readonly string[] = [],
): KeyPair {
  const found = readPair(files, name);
  if (
    found &&
    remaining(found.cert, now) > RENEW_BEFORE &&
    isSignedBy(found.cert, ca.cert) &&
    hasNames(found.cert, names)
  )
    return found;
  const { key, publicKey } = newKey();
  const usage = names.length ? "server auth" : "client auth";
  const cert = issueCertificate(
    {
      subject,
      publicKey,
      names,
      notBefore: now - BACKDATE,
      notAfter: now + VALIDITY,
      usages: ["digital signature", "key encipherment", usage],
    },
    ca,
  );
  return writePair(files, name, { cert, key });
}

/** The pair, if both files are there, well-formed and belong together. */
function readPair(files: Files, name: string): KeyPair | undefined {
  const cert = files.read(`${name}.crt`);
  const key = files.read(`${name}.key`);
  if (!cert || !key) return undefined;
  try {
    return new X509Certificate(cert).checkPrivateKey(privateKey(key)) ? { cert, key } : undefined;
  } catch {
    // A damaged file is replaced like an absent one.
    return undefined;
  }
}

/** The key goes first: a crash in between leaves a pair that does not match and is made again. */
function writePair(files: Files, name: string, pair: KeyPair): KeyPair {
  files.write(`${name}.key`, pair.key);
  files.write(`${name}.crt`, pair.cert);
  return pair;
}

const remaining = (cert: string, now: number) => new X509Certificate(cert).validToDate.getTime() - now;
const isSignedBy = (cert: string, ca: string) => new X509Certificate(cert).verify(new X509Certificate(ca).publicKey);

function hasNames(cert: string, names: readonly string[]): boolean {
  const there = new Set(
    (new X509Certificate(cert).subjectAltName ?? "")
      .split(", ")
      .map((entry) => canonical(entry.replace(/^(DNS|IP Address):/, ""))),
  );
  return names.every((name) => there.has(canonical(name)));
}

const canonical = (name: string) => (isIP(name) ? addressBytes(name).toString("hex") : name);
