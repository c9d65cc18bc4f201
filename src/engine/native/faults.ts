import { hasCode, messageOf } from "#base";
import { EngineError } from "../errors.ts";
import type { EngineErrorCode } from "../port.ts";

/** The fault as the port tells it: an EngineError stays what it is, a full disk is told as such, anything else gets `code`. */
export function engineErrorOf(error: unknown, code: EngineErrorCode, what: string): EngineError {
  if (error instanceof EngineError) return error;
  const actual = hasCode(error, "ENOSPC", "EDQUOT") ? "disk-full" : code;
  return new EngineError(actual, `${what}: ${messageOf(error)}`, { cause: error });
}
