import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { isIP } from "node:net";
import {
  bitString,
  boolean,
  elements as elementsOf,
  explicit,
  implicit,
  integer,
  octetString,
  oid,
  sequence,
  set,
  time,
  tlv,
  utf8String,
} from "./der.ts";

/** A certificate and its private key, both PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

export interface CertificateRequest {
  /** Names, or the DER of a Name to copy as it is. */
  readonly subject: Subject | Buffer;
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKey: Buffer;
  /** DNS names and IP addresses. */
  readonly names?: readonly string[];
  /** Milliseconds since the epoch. */
  readonly notBefore: number;
  readonly notAfter: number;
  readonly usages: readonly ("ca" | "digital signature" | "key encipherment" | "server auth" | "client auth")[];
}

const OID = {
  commonName: "2.5.4.3",
  organization: "2.5.4.10",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  sha256WithRsa: "1.2.840.113549.1.1.11",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  clientAuth: "1.3.6.1.5.5.7.3.2",
};

/** A new EC P-256 key. */
export function newKey(): { key: string; publicKey: Buffer } {
  const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    key: pair.privateKey.export({ type: "sec1", format: "pem" }) as string,
    publicKey: pair.publicKey.export({ type: "spki", format: "der" }),
  };
}

/** Signs a certificate with `issuer`; without one it is self-signed by `selfKey`. Returns PEM. */
export function issueCertificate(request: CertificateRequest, issuer: KeyPair | { selfKey: string }): string {
  const subject = Buffer.isBuffer(request.subject) ? request.subject : nameOf(request.subject);
  const key = createPrivateKey("selfKey" in issuer ? issuer.selfKey : issuer.key);
  const authority = "selfKey" in issuer ? undefined : authorityOf(issuer.cert);
  const algorithm = algorithmOf(key);
  const body = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([0x01]), randomBytes(15)])),
    algorithm,
    authority?.subject ?? subject,
    sequence(time(request.notBefore), time(request.notAfter)),
    subject,
    request.publicKey,
    explicit(3, sequence(...extensions(request, authority?.keyIdentifier ?? keyIdentifier(request.publicKey)))),
  );
  return pem("CERTIFICATE", sequence(body, algorithm, bitString(sign("sha256", body, key))));
}

function algorithmOf(key: KeyObject): Buffer {
  if (key.asymmetricKeyType === "ec") return sequence(oid(OID.ecdsaWithSha256));
  if (key.asymmetricKeyType === "rsa") return sequence(oid(OID.sha256WithRsa), tlv(0x05));
  throw new Error(`a certificate authority with a ${key.asymmetricKeyType} key is not supported: use EC or RSA`);
}

/** RFC 5280 Name: organizations, then the common name, each a set of its own. */
export function nameOf({ commonName, organizations = [] }: Subject): Buffer {
  const part = (type: string, value: string) => set(sequence(oid(type), utf8String(value)));
  return sequence(...organizations.map((value) => part(OID.organization, value)), part(OID.commonName, commonName));
}

/** Issuer name and key identifier as they stand in the authority's own certificate. */
function authorityOf(cert: string): { subject: Buffer; keyIdentifier: Buffer } {
  const parsed = new X509Certificate(cert);
  const spki = parsed.publicKey.export({ type: "spki", format: "der" });
  return { subject: subjectOf(parsed.raw), keyIdentifier: keyIdentifier(spki) };
}

function subjectOf(der: Buffer): Buffer {
  const [certificate] = elementsOf(der);
  const [body] = elementsOf(certificate!.content);
  // version, serial, algorithm, issuer, validity, subject
  return elementsOf(body!.content)[5]!.raw;
}

const keyIdentifier = (publicKey: Buffer) => createHash("sha1").update(publicKey).digest();

function extensions(request: CertificateRequest, authority: Buffer): Buffer[] {
  const extension = (id: string, critical: boolean, value: Buffer) =>
    sequence(oid(id), ...(critical ? [boolean(true)] : []), octetString(value));
  const has = (usage: CertificateRequest["usages"][number]) => request.usages.includes(usage);
  const bits =
    (has("digital signature") || has("ca") ? 0x80 : 0) |
    (has("key encipherment") || has("ca") ? 0x20 : 0) |
    (has("ca") ? 0x04 : 0);
  const extended = [
    ...(has("server auth") ? [oid(OID.serverAuth)] : []),
    ...(has("client auth") ? [oid(OID.clientAuth)] : []),
  ];
  return [
    extension(OID.keyUsage, true, bitString(Buffer.from([bits]), unusedBits(bits))),
    ...(extended.length ? [extension(OID.extendedKeyUsage, false, sequence(...extended))] : []),
    extension(OID.basicConstraints, true, has("ca") ? sequence(boolean(true)) : sequence()),
    extension(OID.subjectKeyIdentifier, false, octetString(keyIdentifier(request.publicKey))),
    extension(OID.authorityKeyIdentifier, false, sequence(implicit(0, authority))),
    ...(request.names?.length ? [extension(OID.subjectAltName, false, alternativeNames(request.names))] : []),
  ];
}

/** DER wants a named bit list without its trailing zero bits. */
function unusedBits(bits: number): number {
  let unused = 0;
  while (unused < 7 && !(bits & (1 << unused))) unused++;
  return unused;
}

function alternativeNames(names: readonly string[]): Buffer {
  return sequence(
    ...names.map((name) => (isIP(name) ? implicit(7, addressBytes(name)) : implicit(2, Buffer.from(name, "latin1")))),
  );
}

/** 4 or 16 bytes of an IP address. */
export function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  // The URL parser expands embedded IPv4 parts and compresses the rest in one known way.
  const [head = "", tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split("::");
  const groups = (text: string) => (text ? text.split(":").map((group) => Number.parseInt(group, 16)) : []);
  const left = groups(head);
  const right = groups(tail ?? "");
  const all = [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}

export function pem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
