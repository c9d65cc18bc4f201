import { Command, CommanderError } from "commander";
import { CodedError, messageOf } from "#base";
import { StatusError } from "#kinds";

/** Exit codes: 0 done, 1 it failed, 2 used wrongly, 3 what was asked for is not there or not running. */
export const EXIT = { failed: 1, usage: 2, absent: 3 } as const;

/** Ends a command with an exit code of its own; the message goes to standard error. */
export class ExitError extends Error {
  readonly exitCode: number;
  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

export function createProgram(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, `${name}: `)) })
    .helpOption("-h, --help", "show help")
    .showSuggestionAfterError();
}

/** Runs a program to its exit code; an error is told in one message that names the way out. */
export async function runProgram(program: Command, argv: readonly string[], name: string): Promise<void> {
  // timers of the library keep no process alive, but a command that waits for one is not done
  const alive = setInterval(() => {}, 2 ** 30);
  try {
    await program.parseAsync(argv as string[]);
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? 0 : EXIT.usage;
      return;
    }
    process.stderr.write(`${name}: ${messageOf(error)}\n`);
    if (error instanceof CodedError && error.hint)
      process.stderr.write(`${" ".repeat(name.length + 2)}${error.hint}\n`);
    process.exitCode = exitCodeOf(error);
  } finally {
    clearInterval(alive);
  }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof ExitError) return error.exitCode;
  if (error instanceof StatusError && error.code === 404) return EXIT.absent;
  if (error instanceof CodedError && error.code === "not-running") return EXIT.absent;
  return EXIT.failed;
}

/** Standard input to its end. */
export async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
