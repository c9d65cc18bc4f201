import { CodedError } from "#base";
import type { EngineErrorCode } from "./port.ts";

/** A fault of the engine with a stable code; the message is what `kubectl describe` shows. */
export class EngineError extends CodedError<EngineErrorCode> {
  override name = "EngineError";
}

export function isEngineError(error: unknown, ...codes: EngineErrorCode[]): error is EngineError {
  return error instanceof EngineError && (codes.length === 0 || codes.includes(error.code));
}
