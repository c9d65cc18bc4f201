import type { Clock } from "#base";
import { issueCertificate, type KeyPair, parseCertificateRequest } from "#apiserver";
import type { CertificateSigner } from "#controllers";

/** Clients whose clock is a little behind must not find a new certificate "not yet valid". */
const BACKDATE = 5 * 60 * 1000;
const USAGES = ["digital signature", "key encipherment", "server auth", "client auth"] as const;

/** Signs certificate requests with the instance's authority. */
export function createCertificateSigner({ clock }: { clock: Clock }, ca: KeyPair): CertificateSigner {
  return {
    read: parseCertificateRequest,
    sign(request, usages, seconds) {
      const { subject, publicKey, dnsNames, ipAddresses } = parseCertificateRequest(request);
      const now = clock.now();
      const certificate = issueCertificate(
        {
          subject,
          publicKey,
          names: [...dnsNames, ...ipAddresses],
          notBefore: now - BACKDATE,
          notAfter: now - BACKDATE + seconds * 1000,
          usages: USAGES.filter((usage) => usages.includes(usage)),
        },
        ca,
      );
      return Buffer.from(certificate).toString("base64");
    },
  };
}
