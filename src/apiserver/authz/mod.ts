export { forbiddenRequest } from "./forbidden.ts";
export { createMastersAuthorizer } from "./masters.ts";
