import { messageOf } from "#base";
import { type CertificateSigningRequest, resources } from "#kinds";
import { type ParsedRequest, parseCertificateRequest } from "../pki/certificate-request.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../ports.ts";
import { isAbout, objectOf, refuse } from "./support.ts";

const SIGNER = "kubernetes.io/kube-apiserver-client";
const MASTERS = "system:masters";

/**
 * Nobody asks for a client certificate of the group that may do everything.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#certificatesubjectrestriction
 */
export function createCertificateSubjectRestriction(): AdmissionPlugin {
  return {
    name: "CertificateSubjectRestriction",
    handles: (attributes) =>
      attributes.operation === "CREATE" && isAbout(attributes, resources.certificateSigningRequests),
    validate(attributes) {
      const { spec } = objectOf<CertificateSigningRequest>(attributes);
      if (spec.signerName !== SIGNER) return;
      if (parsed(attributes, spec.request).organizations.includes(MASTERS))
        throw refuse(attributes, `use of ${SIGNER} signer with ${MASTERS} group is not allowed`);
    },
  };
}

function parsed(attributes: AdmissionAttributes, request: string): ParsedRequest {
  try {
    return parseCertificateRequest(request);
  } catch (error) {
    throw refuse(attributes, `failed to parse CSR: ${messageOf(error)}`);
  }
}
