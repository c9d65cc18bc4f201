export { isStoreError, StoreError } from "./errors.ts";
export type * from "./port.ts";
