import { deepClone, deepEqual } from "#base";
import type { CertificateSigningRequest, CertificateSigningRequestCondition } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { fieldError } from "../validation/field-error.ts";
import { isDNS1123Subdomain } from "../validation/names.ts";

const USAGES = [
  "any",
  "cert sign",
  "client auth",
  "code signing",
  "content commitment",
  "crl sign",
  "data encipherment",
  "decipher only",
  "digital signature",
  "email protection",
  "encipher only",
  "ipsec end system",
  "ipsec tunnel",
  "ipsec user",
  "key agreement",
  "key encipherment",
  "microsoft sgc",
  "netscape sgc",
  "ocsp signing",
  "s/mime",
  "server auth",
  "signing",
  "timestamping",
];
const LEGACY = "kubernetes.io/legacy-unknown";
const MIN_SECONDS = 600;

export function validateCertificateSigningRequest({ spec, status }: CertificateSigningRequest): FieldError[] {
  const errors: FieldError[] = [];
  if (!isPemRequest(spec.request))
    errors.push(fieldError.invalid("spec.request", spec.request ?? "", "PEM block type must be CERTIFICATE REQUEST"));
  const usages = spec.usages ?? [];
  if (usages.length === 0) errors.push(fieldError.required("spec.usages"));
  for (const [i, usage] of usages.entries()) {
    if (!USAGES.includes(usage)) errors.push(fieldError.notSupported(`spec.usages[${i}]`, usage, USAGES));
    else if (usages.indexOf(usage) < i) errors.push(fieldError.duplicate(`spec.usages[${i}]`, usage));
  }
  if (spec.signerName === LEGACY)
    errors.push(
      fieldError.invalid("spec.signerName", LEGACY, "the legacy signerName is not allowed via this API version"),
    );
  else errors.push(...validateSignerName(spec.signerName));
  if (spec.expirationSeconds !== undefined && spec.expirationSeconds < MIN_SECONDS)
    errors.push(
      fieldError.invalid(
        "spec.expirationSeconds",
        spec.expirationSeconds,
        "may not specify a duration less than 600 seconds (10 minutes)",
      ),
    );
  const certificate = status?.certificate;
  if (
    certificate &&
    !/-----BEGIN CERTIFICATE-----[^-]+-----END/.test(Buffer.from(certificate, "base64").toString("latin1"))
  )
    errors.push(
      fieldError.invalid("status.certificate", "<certificate data>", "must contain at least one CERTIFICATE PEM block"),
    );
  return [...errors, ...validateConditions(status?.conditions ?? [])];
}

function isPemRequest(base64: string | undefined): boolean {
  return /-----BEGIN CERTIFICATE REQUEST-----[^-]+-----END CERTIFICATE REQUEST-----/.test(
    Buffer.from(base64 ?? "", "base64").toString("latin1"),
  );
}

function validateSignerName(name: string | undefined): FieldError[] {
  if (!name) return [fieldError.required("spec.signerName")];
  const [domain = "", ...path] = name.split("/");
  if (path.length !== 1 || !domain.includes("."))
    return [
      fieldError.invalid(
        "spec.signerName",
        name,
        "must be a fully qualified domain and path of the form 'example.com/signer-name'",
      ),
    ];
  return [domain, path[0]!].flatMap((part) =>
    isDNS1123Subdomain(part).map((why) => fieldError.invalid("spec.signerName", part, why)),
  );
}

function validateConditions(conditions: readonly CertificateSigningRequestCondition[]): FieldError[] {
  const types = conditions.map(({ type }) => type);
  const errors = conditions.flatMap(({ type, status }, i): FieldError[] => {
    const at = `status.conditions[${i}]`;
    if (!type) return [fieldError.required(`${at}.type`)];
    if (!status) return [fieldError.required(`${at}.status`)];
    if (["Approved", "Denied", "Failed"].includes(type) && status !== "True")
      return [fieldError.notSupported(`${at}.status`, status, ["True"])];
    return types.indexOf(type) < i ? [fieldError.duplicate(`${at}.type`, type)] : [];
  });
  if (types.includes("Approved") && types.includes("Denied"))
    errors.push(
      fieldError.invalid("status.conditions", "Denied", "Approved and Denied conditions are mutually exclusive"),
    );
  return errors;
}

/** A client asks; who decides and who signs write to `approval` and `status`, and only there. */
export function prepareCertificateRequestUpdate(
  csr: CertificateSigningRequest,
  old: CertificateSigningRequest,
  subresource: string,
): void {
  csr.spec = deepClone<CertificateSigningRequest["spec"]>(old.spec);
  const decided = ({ type }: CertificateSigningRequestCondition) => type === "Approved" || type === "Denied";
  const before = old.status?.conditions ?? [];
  const now = csr.status?.conditions ?? [];
  if (subresource === "") restoreStatus(csr, old);
  else if (subresource === "approval") {
    restoreStatus(csr, old);
    csr.status = { ...csr.status, conditions: now };
  } else if (csr.status)
    csr.status = { ...csr.status, conditions: [...before.filter(decided), ...now.filter((one) => !decided(one))] };
  if (subresource !== "") stampConditions(csr, before);
}

function restoreStatus(csr: CertificateSigningRequest, { status }: CertificateSigningRequest): void {
  if (status) csr.status = deepClone<NonNullable<typeof status>>(status);
  else delete csr.status;
}

function stampConditions(
  { status }: CertificateSigningRequest,
  before: readonly CertificateSigningRequestCondition[],
): void {
  for (const condition of status?.conditions ?? []) {
    const old = before.find(({ type }) => type === condition.type);
    const at = `${new Date().toISOString().slice(0, 19)}Z`;
    if (!condition.lastUpdateTime)
      condition.lastUpdateTime =
        old && deepEqual({ ...condition, lastUpdateTime: old.lastUpdateTime }, old) ? old.lastUpdateTime! : at;
    if (!condition.lastTransitionTime)
      condition.lastTransitionTime = old?.status === condition.status ? (old.lastTransitionTime ?? at) : at;
  }
}
