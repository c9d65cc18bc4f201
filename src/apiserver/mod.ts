export { type AdmissionDeps, createAdmissionChain, keepPolicyStatus } from "./admission/mod.ts";
export {
  ADMIN,
  ANONYMOUS,
  createIdentify,
  createOpenIDDiscovery,
  type IdentifyDeps,
  componentUser,
  LOOPBACK,
  nodeUser,
  serviceAccountUser,
  type TokenAuthenticator,
} from "./authn/mod.ts";
export {
  AUTOUPDATE,
  bootstrapPolicy,
  createEscalationCheck,
  createMastersAuthorizer,
  createNodeAuthorizer,
  createRbacAuthorizer,
  createUnionAuthorizer,
  forbiddenRequest,
  type RbacAuthorizer,
  uncovered,
} from "./authz/mod.ts";
export {
  createListener,
  type Credentials,
  type InFlightLimits,
  type Listener,
  type ListenerDeps,
  type ListenerOptions,
  type TlsOptions,
} from "./listen/mod.ts";
export {
  kubeconfig,
  type KubeconfigOptions,
  type KeyPair,
  issueCertificate,
  loadOrCreatePki,
  parseCertificateRequest,
  type Pki,
  type PkiOptions,
  writeKubeconfig,
  writePrivateFile,
} from "./pki/mod.ts";
export { versionInfo, type VersionInfo } from "./discovery/version.ts";
export type { Health } from "./discovery/health.ts";
export type {
  AdmissionAttributes,
  AdmissionPlugin,
  Authenticator,
  AuthorizationAttributes,
  Authorizer,
  Reader,
  RequestInfo,
  ResourceHooks,
  VirtualResource,
} from "./ports.ts";
export { createQuotaCharges } from "./registry/quota-charges.ts";
export { startLocalServices } from "./aggregation/mod.ts";
export { createPostReview } from "./admission/webhook/post.ts";
export { createConversions, createCustomSchemas, type CustomResources, startCustomResources } from "./crd/mod.ts";
export { createReader } from "./registry/reader.ts";
export { type ApiServer, type ApiServerDeps, type ApiServerOptions, createApiServer, type Route } from "./server.ts";
export { createServiceAllocation, type ServiceAllocationOptions } from "./services/allocation.ts";
export { createOpenApi, type CustomSchemas, type OpenApi } from "./openapi/openapi.ts";
export { createServiceAccountTokens, ISSUER, type ServiceAccountTokens } from "./authn/service-account-tokens.ts";
export { createStreaming } from "./streaming/mod.ts";
export { createAccessReviews, createIdentityReviews } from "./reviews/mod.ts";
