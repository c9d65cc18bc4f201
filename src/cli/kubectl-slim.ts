#!/usr/bin/env -S node --no-warnings
// kubectl-slim: kubectl's commands in plain JavaScript, for hosts without kubectl.
import { nodeEnvironment } from "./kubectl-slim/node-environment.ts";
import { runKubectl } from "./kubectl-slim/program.ts";

// timers of the library keep no process alive, but a command that waits for one is not done
const alive = setInterval(() => {}, 2 ** 30);
process.exitCode = await runKubectl(process.argv.slice(2), nodeEnvironment());
clearInterval(alive);
