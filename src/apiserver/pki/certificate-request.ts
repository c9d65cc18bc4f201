import { createPublicKey, verify } from "node:crypto";
import { type Element, elements, oidText } from "./der.ts";

/** What a PKCS#10 request asks for. */
export interface ParsedRequest {
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** DER of the subject and of the public key. */
  readonly subject: Buffer;
  readonly publicKey: Buffer;
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  /** E-mail addresses and URIs, which none of the built-in signers puts into a certificate. */
  readonly otherNames: readonly string[];
}

const COMMON_NAME = "2.5.4.3";
const ORGANIZATION = "2.5.4.10";
const EXTENSION_REQUEST = "1.2.840.113549.1.9.14";
const ALTERNATIVE_NAMES = "2.5.29.17";

/** Reads a request as `spec.request` holds it: PEM in base64. @throws Error when it is none, or its signature is wrong */
export function parseCertificateRequest(base64: string): ParsedRequest {
  const text = Buffer.from(base64, "base64").toString("latin1");
  const [, body] = /-----BEGIN CERTIFICATE REQUEST-----([^-]+)-----END CERTIFICATE REQUEST-----/.exec(text) ?? [];
  if (!body) throw new Error("PEM block type must be CERTIFICATE REQUEST");
  const [request] = elements(Buffer.from(body, "base64"));
  const [info, , signature] = elements(request!.content);
  const [, subject, publicKey, attributes] = elements(info!.content);
  if (!subject || !publicKey || !signature) throw new Error("malformed certificate request");
  const key = createPublicKey({ key: publicKey.raw, format: "der", type: "spki" });
  // a bit string starts with the number of its unused bits
  const digest = key.asymmetricKeyType === "ed25519" ? null : digestOf(request!);
  if (!verify(digest, info!.raw, key, signature.content.subarray(1)))
    throw new Error("the signature of the certificate request is wrong");
  return {
    ...subjectOf(subject),
    subject: subject.raw,
    publicKey: publicKey.raw,
    ...namesOf(attributes),
  };
}

function digestOf(request: Element): string {
  const algorithm = oidText(elements(elements(request.content)[1]!.content)[0]!.content);
  const digest = DIGESTS[algorithm];
  if (!digest) throw new Error(`unknown signature algorithm ${algorithm}`);
  return digest;
}

const DIGESTS: Readonly<Record<string, string>> = {
  "1.2.840.10045.4.3.2": "sha256",
  "1.2.840.10045.4.3.3": "sha384",
  "1.2.840.10045.4.3.4": "sha512",
  "1.2.840.113549.1.1.11": "sha256",
  "1.2.840.113549.1.1.12": "sha384",
  "1.2.840.113549.1.1.13": "sha512",
};

function subjectOf(subject: Element): { commonName: string; organizations: string[] } {
  const parts = elements(subject.content)
    .flatMap((set) => elements(set.content))
    .map((pair) => {
      const [type, value] = elements(pair.content);
      return { type: oidText(type!.content), value: value!.content.toString("utf8") };
    });
  const of = (type: string) => parts.filter((part) => part.type === type).map(({ value }) => value);
  return { commonName: of(COMMON_NAME)[0] ?? "", organizations: of(ORGANIZATION) };
}

function namesOf(attributes: Element | undefined): Pick<ParsedRequest, "dnsNames" | "ipAddresses" | "otherNames"> {
  const found = { dnsNames: [] as string[], ipAddresses: [] as string[], otherNames: [] as string[] };
  for (const attribute of attributes ? elements(attributes.content) : []) {
    const [type, values] = elements(attribute.content);
    if (oidText(type!.content) !== EXTENSION_REQUEST) continue;
    for (const extension of elements(elements(values!.content)[0]!.content)) {
      const [id, ...rest] = elements(extension.content);
      if (oidText(id!.content) !== ALTERNATIVE_NAMES) continue;
      const [names] = elements(rest.at(-1)!.content);
      for (const { tag, content } of elements(names!.content)) {
        if (tag === 0x82) found.dnsNames.push(content.toString("latin1"));
        else if (tag === 0x87) found.ipAddresses.push(addressText(content));
        else found.otherNames.push(content.toString("latin1"));
      }
    }
  }
  return found;
}

function addressText(bytes: Buffer): string {
  if (bytes.length === 4) return [...bytes].join(".");
  return Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(i * 2).toString(16)).join(":");
}
