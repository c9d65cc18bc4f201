export { diagnose, renderDiagnosis } from "./diagnose.ts";
export type { About, Cause, CauseCode, Diagnosis, Evidence } from "./evidence.ts";
export { gatherEvidence, type GatherDeps, type GatherOptions } from "./gather.ts";
export { type Readiness, readinessOf } from "./readiness.ts";
