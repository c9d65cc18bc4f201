import { CodedError } from "#base";
import type { StoreErrorCode } from "./port.ts";

/** A fault of the store with a code of a closed set. */
export class StoreError extends CodedError<StoreErrorCode> {
  override name = "StoreError";
}

export function isStoreError(error: unknown, ...codes: StoreErrorCode[]): error is StoreError {
  return error instanceof StoreError && (codes.length === 0 || codes.includes(error.code));
}
