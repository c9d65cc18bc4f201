export { EngineError, isEngineError } from "./errors.ts";
export type * from "./port.ts";
