export { createIdentify, type IdentifyDeps, type TokenAuthenticator } from "./identify.ts";
export {
  ADMIN,
  ANONYMOUS,
  componentUser,
  LOOPBACK,
  nodeUser,
  serviceAccountUser,
  serviceAccountGroups,
  serviceAccountUsername,
  splitServiceAccount,
} from "./users.ts";
export { createOpenIDDiscovery } from "./openid-discovery.ts";
