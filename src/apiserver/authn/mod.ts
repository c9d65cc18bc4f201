export { createIdentify, type IdentifyDeps, type TokenAuthenticator } from "./identify.ts";
export {
  ADMIN,
  ANONYMOUS,
  LOOPBACK,
  nodeUser,
  serviceAccountGroups,
  serviceAccountUsername,
  splitServiceAccount,
} from "./users.ts";
