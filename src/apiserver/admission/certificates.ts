import { type ParsedRequest, parseCertificateRequest } from "../pki/certificate-request.ts";
import { type CertificateSigningRequest, fieldError, invalid } from "#kinds";
import type { AdmissionAttributes, AdmissionPlugin, Authorizer } from "../ports.ts";
import { refuse } from "./support.ts";

const CLIENT = "kubernetes.io/kube-apiserver-client";

/**
 * Certificate requests: who asks is written into them; approving and signing need the verb of that name on the signer; nobody
 * becomes a member of `system:masters` by one.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#authorization
 */
export function createCertificateAdmission({ authorizer }: { authorizer: Authorizer }): AdmissionPlugin {
  return {
    name: "CertificateApproval",
    handles: ({ kind }) => kind.resource === "certificatesigningrequests" && kind.group === "certificates.k8s.io",
    async admit(attributes) {
      if (attributes.operation === "CREATE" && !attributes.subresource) nameRequester(attributes);
      if (attributes.operation !== "UPDATE") return;
      const { subresource } = attributes;
      if (subresource === "approval") await mayOnSigner(attributes, "approve");
      else if (subresource === "status" && isSigned(attributes)) await mayOnSigner(attributes, "sign");
    },
    validate(attributes) {
      const csr = attributes.object as unknown as CertificateSigningRequest;
      if (attributes.operation !== "CREATE" || csr.spec.signerName !== CLIENT) return;
      if (read(attributes, csr).organizations.includes("system:masters"))
        throw refuse(attributes, `use of ${CLIENT} signer with system:masters group is not allowed`);
    },
  };

  async function mayOnSigner(attributes: AdmissionAttributes, verb: "approve" | "sign"): Promise<void> {
    const { signerName } = (attributes.old as unknown as CertificateSigningRequest).spec;
    const asked = {
      user: attributes.user,
      verb,
      group: "certificates.k8s.io",
      version: "*",
      resource: "signers",
      subresource: "",
      namespace: "",
      isResourceRequest: true,
      path: "",
    };
    for (const name of [signerName, `${signerName.split("/")[0]}/*`])
      if ((await authorizer.authorize({ ...asked, name })).allowed) return;
    throw refuse(attributes, `user not permitted to ${verb} requests with signerName ${JSON.stringify(signerName)}`);
  }
}

/** @throws StatusError 422 */
function read({ kind, name }: AdmissionAttributes, { spec }: CertificateSigningRequest): ParsedRequest {
  try {
    return parseCertificateRequest(spec.request);
  } catch (error) {
    throw invalid(kind, name, [fieldError.invalid("spec.request", spec.request, (error as Error).message)]);
  }
}

function nameRequester({ object, user }: AdmissionAttributes): void {
  const { spec } = object as unknown as CertificateSigningRequest;
  delete spec.uid;
  delete spec.extra;
  spec.username = user.username;
  spec.groups = [...user.groups];
  if (user.uid) spec.uid = user.uid;
  if (user.extra)
    spec.extra = Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]]));
}

/** The certificate changed, or a condition that is the signer's to set. */
function isSigned({ object, old }: AdmissionAttributes): boolean {
  const of = (csr: AdmissionAttributes["object"]) => (csr as unknown as CertificateSigningRequest).status ?? {};
  const failed = (csr: AdmissionAttributes["object"]) =>
    (of(csr).conditions ?? []).some(({ type }) => type === "Failed");
  return of(object).certificate !== of(old).certificate || failed(object) !== failed(old);
}
