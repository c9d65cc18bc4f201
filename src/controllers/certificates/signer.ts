import type { DeepReadonly } from "#base";
import { type CertificateSigningRequest, resources } from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { copyOf, fromCache, ignoreNotFound, timeOf, timestamp } from "../runtime/objects.ts";

/** What a certificate is asked for, as read from the request. */
export interface RequestedCertificate {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  readonly otherNames: readonly string[];
}

/** The authority that signs. */
export interface CertificateSigner {
  /** @throws Error for what is no request */
  read(request: string): RequestedCertificate;
  /** The certificate as `status.certificate` holds it. */
  sign(request: string, usages: readonly string[], seconds: number): string;
}

type CSR = DeepReadonly<CertificateSigningRequest>;

const PREFIX = "kubernetes.io/";
const YEAR = 365 * 24 * 3600;
const HOUR = 3_600_000;

/**
 * Approves what a kubelet asks for itself, signs what is approved for the built-in signers, and removes requests that are
 * done with or that nobody answered.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/
 */
export function createCertificateController(deps: ControllerDeps, signer: CertificateSigner): Controller {
  const requests = deps.informers.for(resources.certificateSigningRequests);
  return createController(deps, {
    name: "certificate",
    watch({ on, enqueue }) {
      on(requests, {
        add: ({ metadata }) => enqueue(metadata.name),
        update: ({ metadata }) => enqueue(metadata.name),
      });
    },
    async reconcile(name) {
      const csr = fromCache(requests, name);
      if (!csr) return;
      const end = endOf(csr);
      const left = end - deps.clock.now();
      if (left <= 0) {
        await ignoreNotFound(deps.client.delete(resources.certificateSigningRequests, name));
        return;
      }
      if (!has(csr, "Approved") && !has(csr, "Denied")) await approve(csr);
      else if (has(csr, "Approved") && !has(csr, "Failed") && !csr.status?.certificate) await sign(csr);
      return { requeueAfterMs: Math.min(left, 24 * HOUR) };
    },
  });

  async function approve(csr: CSR): Promise<void> {
    if (csr.spec.signerName !== `${PREFIX}kube-apiserver-client-kubelet`) return;
    const asked = read(csr);
    if (!asked || whyNot("kube-apiserver-client-kubelet", asked, csr.spec.usages ?? [])) return;
    const self = csr.spec.username === asked.commonName;
    const subresource = self ? "selfnodeclient" : "nodeclient";
    if (!(await mayAsk(csr, subresource))) return;
    const message = self
      ? "Auto approving self kubelet client certificate after SubjectAccessReview."
      : "Auto approving kubelet client certificate after SubjectAccessReview.";
    await addCondition(csr, "approval", { type: "Approved", status: "True", reason: "AutoApproved", message });
  }

  async function mayAsk({ spec }: CSR, subresource: string): Promise<boolean> {
    const { username, uid, groups, extra } = spec;
    const review = await deps.client.create(resources.subjectAccessReviews, {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SubjectAccessReview",
      metadata: {},
      spec: {
        user: username,
        uid,
        groups,
        extra,
        resourceAttributes: {
          group: "certificates.k8s.io",
          resource: "certificatesigningrequests",
          verb: "create",
          subresource,
          version: "*",
        },
      },
    } as never);
    return review.status?.allowed === true;
  }

  async function sign(csr: CSR): Promise<void> {
    const kind = csr.spec.signerName.startsWith(PREFIX) ? csr.spec.signerName.slice(PREFIX.length) : "";
    if (!SIGNERS.has(kind)) return;
    const asked = read(csr);
    const wrong = asked ? whyNot(kind, asked, csr.spec.usages ?? []) : "the request can't be read";
    if (wrong) {
      const condition = { type: "Failed", status: "True", reason: "SignerValidationFailure", message: wrong } as const;
      return addCondition(csr, "status", condition);
    }
    const seconds = Math.min(csr.spec.expirationSeconds ?? YEAR, YEAR);
    const certificate = signer.sign(csr.spec.request, csr.spec.usages ?? [], seconds);
    const copy = copyOf(resources.certificateSigningRequests, csr);
    await deps.client.update(
      resources.certificateSigningRequests,
      { ...copy, status: { ...copy.status, certificate } },
      { subresource: "status" },
    );
  }

  function read({ spec }: CSR): RequestedCertificate | undefined {
    try {
      return signer.read(spec.request);
    } catch {
      // told as a failed condition by who signs; an unreadable request is never approved
      return undefined;
    }
  }

  async function addCondition(
    csr: CSR,
    subresource: "approval" | "status",
    condition: { type: string; status: "True"; reason: string; message: string },
  ): Promise<void> {
    const copy = copyOf(resources.certificateSigningRequests, csr);
    const stamped = { ...condition, lastUpdateTime: timestamp(deps.clock) };
    const conditions = [...(copy.status?.conditions ?? []), stamped];
    await deps.client.update(
      resources.certificateSigningRequests,
      { ...copy, status: { ...copy.status, conditions } },
      { subresource },
    );
  }
}

const SIGNERS = new Set([
  "kube-apiserver-client",
  "kube-apiserver-client-kubelet",
  "kubelet-serving",
  "legacy-unknown",
]);

const has = (csr: CSR, wanted: string) => (csr.status?.conditions ?? []).some(({ type }) => type === wanted);

/** When a request goes: an hour after it was answered, a day after it was made and was not. */
function endOf(csr: CSR): number {
  const answered = (csr.status?.conditions ?? []).map(({ lastUpdateTime }) => timeOf(lastUpdateTime));
  if (answered.length > 0) return Math.max(...answered) + HOUR;
  return timeOf(csr.metadata.creationTimestamp) + 24 * HOUR;
}

/** Why a signer won't sign; undefined when it will. */
export function whyNot(kind: string, asked: RequestedCertificate, usages: readonly string[]): string | undefined {
  const only = (...allowed: string[]) => usages.every((usage) => allowed.includes(usage));
  switch (kind) {
    case "kube-apiserver-client":
      if (!usages.includes("client auth")) return "usages did not match [client auth]";
      return only("client auth", "digital signature", "key encipherment")
        ? undefined
        : `usages did not match [client auth digital signature key encipherment]`;
    case "kube-apiserver-client-kubelet":
      if (asked.organizations.join() !== "system:nodes") return "subject organization is not system:nodes";
      if (asked.dnsNames.length > 0) return "DNS subjectAltNames are not allowed";
      if (asked.ipAddresses.length > 0) return "IP subjectAltNames are not allowed";
      if (asked.otherNames.length > 0) return "Email or URI subjectAltNames are not allowed";
      if (!asked.commonName.startsWith("system:node:")) return "subject common name does not begin with system:node: ";
      return usages.includes("client auth") && only("client auth", "digital signature", "key encipherment")
        ? undefined
        : "usages did not match [digital signature, key encipherment, client auth]";
    case "kubelet-serving":
      if (asked.organizations.join() !== "system:nodes") return "subject organization is not system:nodes";
      if (asked.dnsNames.length + asked.ipAddresses.length === 0) return "DNS or IP subjectAltName is required";
      if (asked.otherNames.length > 0) return "Email or URI subjectAltNames are not allowed";
      if (!asked.commonName.startsWith("system:node:")) return "subject common name does not begin with system:node: ";
      return usages.includes("server auth") && only("server auth", "digital signature", "key encipherment")
        ? undefined
        : "usages did not match [digital signature, key encipherment, server auth]";
    default:
      return undefined;
  }
}
