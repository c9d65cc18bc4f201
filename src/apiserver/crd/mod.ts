export { type Conversions, createConversions } from "./conversion.ts";
export { type CustomResources, type CustomResourcesDeps, startCustomResources } from "./registrar.ts";
export { createCustomSchemas } from "./openapi.ts";
