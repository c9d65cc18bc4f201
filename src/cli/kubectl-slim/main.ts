import { nodeEnvironment } from "./node-environment.ts";
import { runKubectl } from "./program.ts";

/** Runs the command line of this process. */
export async function main(): Promise<void> {
  // a reader that has seen enough (`| head`) is no fault
  process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  // timers of the library keep no process alive, but a command that waits for one is not done
  const alive = setInterval(() => {}, 2 ** 30);
  process.exitCode = await runKubectl(process.argv.slice(2), nodeEnvironment());
  clearInterval(alive);
}
