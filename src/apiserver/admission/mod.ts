export { createNamespaceLifecycle } from "./namespace-lifecycle.ts";
export { createServiceAccountAdmission } from "./service-account.ts";
