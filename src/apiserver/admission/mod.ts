export { type AdmissionDeps, createAdmissionChain } from "./chain.ts";
