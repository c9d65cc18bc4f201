/** What one probe found. `error`: it could not be made at all; counts for nothing. */
export type Outcome =
  | { readonly result: "success" }
  | { readonly result: "warning"; readonly output: string }
  | { readonly result: "failure"; readonly output: string }
  | { readonly result: "error"; readonly output: string };

export const success: Outcome = { result: "success" };
export const failure = (output: string): Outcome => ({ result: "failure", output });

/** Most that is read of an answer, bytes. */
export const MAX_ANSWER: number = 10 << 10;
