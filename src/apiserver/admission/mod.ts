export { createDefaultTolerationSeconds } from "./default-toleration-seconds.ts";
export { createNamespaceLifecycle } from "./namespace-lifecycle.ts";
export { createServiceAccountAdmission } from "./service-account.ts";
export { createPriority } from "./priority.ts";
export { createNodeRestriction } from "./node-restriction.ts";
