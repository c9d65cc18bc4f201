export { type AdmissionDeps, createAdmissionChain } from "./chain.ts";
export { keepPolicyStatus } from "./policy/policy-status.ts";
