import { CodedError, JsonPathError } from "#base";
import { StatusError } from "#kinds";
import { UsageError } from "./flags.ts";

/** Something that kubectl itself finds wrong: `error: <message>`. */
export class CommandError extends Error {
  override name = "CommandError";
  readonly exitCode: number;
  /** Printed as it is, without `error: `. */
  readonly bare: boolean;
  constructor(message: string, options: { exitCode?: number; bare?: boolean } = {}) {
    super(message);
    this.exitCode = options.exitCode ?? 1;
    this.bare = options.bare ?? false;
  }
}

/** Ends with an exit code after everything was said. */
export class SilentExit extends Error {
  readonly exitCode: number;
  constructor(exitCode: number) {
    super(`exit code ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** What kubectl prints for an error, without the final newline, and the exit code. */
export function describeError(error: unknown, command: string): { text: string; exitCode: number } {
  if (error instanceof AggregateError) {
    const all = error.errors.map((one) => describeError(one, command));
    return { text: all.map(({ text }) => text).join("\n"), exitCode: Math.max(...all.map(({ exitCode }) => exitCode)) };
  }
  if (error instanceof SilentExit) return { text: "", exitCode: error.exitCode };
  if (error instanceof UsageError)
    return { text: `error: ${error.message}\nSee '${command} --help' for usage.`, exitCode: 1 };
  if (error instanceof CommandError)
    return { text: error.bare ? error.message : `error: ${error.message}`, exitCode: error.exitCode };
  if (error instanceof StatusError) return { text: statusText(error), exitCode: 1 };
  if (error instanceof CodedError)
    return { text: `error: ${error.message}${error.hint ? `\n${error.hint}` : ""}`, exitCode: 1 };
  if (error instanceof JsonPathError) return { text: `error: error parsing jsonpath: ${error.message}`, exitCode: 1 };
  return { text: `error: ${error instanceof Error ? error.message : String(error)}`, exitCode: 1 };
}

function statusText(error: StatusError): string {
  const { reason, message, details } = error.status;
  const cause = (error as { cause?: { code?: string; message?: string } }).cause;
  if (cause?.code === "ECONNREFUSED") {
    const server = /at (\S+?):? /.exec(error.message)?.[1]?.replace(/^https?:\/\//, "") ?? "";
    return `The connection to the server ${server} was refused - did you specify the right host or port?`;
  }
  if (cause?.code) return `Unable to connect to the server: ${cause.message}`;
  if (reason === "Unauthorized") return "error: You must be logged in to the server (Unauthorized)";
  if (reason === "Invalid" && details?.kind) return invalidText(error);
  // what discovery did not find was found out here, not told by the server
  if (reason === "NotFound" && /^the server doesn't have a resource type|^no matches for kind/.test(error.message))
    return `error: ${error.message}`;
  return `Error from server${reason ? ` (${reason})` : ""}: ${message}`;
}

function invalidText(error: StatusError): string {
  const { details } = error.status;
  const causes = details?.causes ?? [];
  const lead = `The ${details?.kind} ${JSON.stringify(details?.name ?? "")} is invalid`;
  if (causes.length === 0) return `${lead}: ${error.message}`;
  const lines = causes.map(({ field, message }) =>
    field && field !== "<nil>" ? `${field}: ${message}` : (message ?? ""),
  );
  return lines.length === 1
    ? `${lead}: ${lines[0]}`
    : `${lead}: \n${[...new Set(lines)].map((line) => `* ${line}`).join("\n")}`;
}
