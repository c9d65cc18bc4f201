import type { Clock, DeepReadonly, Logger, Random } from "#base";
import type { ResourceQuota, Scheme, Usage } from "#kinds";
import type { AdmissionPlugin, Authorizer, Reader } from "../ports.ts";
import { createCertificateSubjectRestriction } from "./certificate-subject.ts";
import { createCertificateAdmission } from "./certificates.ts";
import { createPersistentVolumeClaimResize } from "./claim-resize.ts";
import { createDefaultIngressClass, createDefaultStorageClass } from "./default-classes.ts";
import { createDefaultTolerationSeconds } from "./default-toleration-seconds.ts";
import { createLimitRanger } from "./limit-ranger.ts";
import { createNamespaceLifecycle } from "./namespace-lifecycle.ts";
import { createNodeRestriction } from "./node-restriction.ts";
import { createPodSecurity } from "./pod-security/pod-security.ts";
import { createExpressionChecks } from "./policy/expression-checks.ts";
import { createMutatingPolicies } from "./policy/mutating-policies.ts";
import { createValidatingPolicies } from "./policy/validating-policies.ts";
import { createPodTopologyLabels } from "./pod-topology-labels.ts";
import { createPriority } from "./priority.ts";
import { createResourceQuotaAdmission } from "./resource-quota.ts";
import { createRuntimeClass } from "./runtime-class.ts";
import { createServiceAccountAdmission } from "./service-account.ts";
import { createStorageObjectInUseProtection } from "./storage-protection.ts";
import { createTaintNodesByCondition } from "./taint-nodes.ts";
import { createPostReview } from "./webhook/post.ts";
import { createMutatingWebhooks, createValidatingWebhooks } from "./webhook/webhooks.ts";

export interface AdmissionDeps {
  readonly reader: Reader;
  readonly scheme: Scheme;
  readonly authorizer: Authorizer;
  readonly logger: Logger;
  readonly random: Random;
  readonly clock: Clock;
  /** Writes what a quota has used; false when the quota was changed since it was read. */
  readonly chargeQuota: (quota: DeepReadonly<ResourceQuota>, used: Usage) => Promise<boolean>;
}

/**
 * Every plugin that is on by default, in the order in which a call meets them: first all that change it, then, in the same order,
 * all that may only refuse.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
 */
export function createAdmissionChain(deps: AdmissionDeps): AdmissionPlugin[] {
  const { reader, chargeQuota: charge } = deps;
  const webhooks = { ...deps, post: createPostReview({ reader }) };
  return [
    createNamespaceLifecycle({ reader }),
    createLimitRanger({ reader }),
    createServiceAccountAdmission(deps),
    createNodeRestriction({ reader }),
    createTaintNodesByCondition(),
    createPodSecurity({ reader }),
    createPriority({ reader }),
    createDefaultTolerationSeconds(),
    createDefaultStorageClass({ reader }),
    createStorageObjectInUseProtection(),
    createPersistentVolumeClaimResize({ reader }),
    createRuntimeClass({ reader }),
    createDefaultIngressClass({ reader }),
    createPodTopologyLabels({ reader }),
    createExpressionChecks(),
    createCertificateAdmission(deps),
    createCertificateSubjectRestriction(),
    createMutatingPolicies(deps),
    createMutatingWebhooks(webhooks),
    createValidatingPolicies(deps),
    createValidatingWebhooks(webhooks),
    createResourceQuotaAdmission({ reader, clock: deps.clock, charge }),
  ];
}
