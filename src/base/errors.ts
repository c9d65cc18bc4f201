/** An error with a stable code, for faults that callers tell apart. Message: what was tried, on what, what to do. */
export class CodedError<Code extends string = string> extends Error {
  readonly code: Code;
  /** What a user can do about it, shown on a line of its own. */
  readonly hint: string | undefined;
  constructor(code: Code, message: string, options?: { cause?: unknown; hint?: string }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.name = "CodedError";
    this.code = code;
    this.hint = options?.hint;
  }
}

/** True for an error (ours or Node's) that carries this code. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(error.code as string);
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
