#!/usr/bin/env -S node --no-warnings
// slimd: the daemon, in the foreground.
import { join } from "node:path";
import { createLogger, messageOf } from "#base";
import { CONFIG_VARIABLES, flagOf, readConfig, startInstance } from "#cluster";
import { createProgram, runProgram } from "./program.ts";

const program = createProgram(
  "slimd",
  "Runs a slim instance: API server, controllers, scheduler, kubelet and container engine.",
);
for (const [variable, description] of Object.entries(CONFIG_VARIABLES)) {
  program.option(`${flagOf(variable)} <value>`, `${description} [${variable}]`);
}

program.action(async (options: Record<string, string>) => {
  const env = { ...process.env };
  for (const variable of Object.keys(CONFIG_VARIABLES)) {
    const value = options[camelCase(flagOf(variable).slice(2))];
    if (value !== undefined) env[variable] = value;
  }
  const config = readConfig(env);
  const logger = createLogger((line) => process.stderr.write(`${line}\n`), { level: config.logLevel, now: Date.now });
  process.on("unhandledRejection", (error) => logger.error("a promise was rejected and nobody looked", { error }));
  process.on("uncaughtException", (error) => logger.error("an error was thrown and nobody caught it", { error }));
  const stop = Promise.withResolvers<string>();
  let serving = false;
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(signal, () => {
      stop.resolve(signal);
      // half started there is nothing to stop in order: the next start finds what this one began
      if (!serving) process.exit(1);
    });
  }
  const instance = await startInstance(config, { logger });
  serving = true;
  logger.info("serving", {
    kubeconfig: join(config.dataDir, "kubeconfig"),
    api: instance.apiAddress ?? "off",
    socket: config.kubeSocket,
  });
  logger.info("stopping; workloads go on", { signal: await stop.promise });
  await instance.stop().catch((error: unknown) => logger.error("stopping failed", { error: messageOf(error) }));
  process.exit(0);
});

await runProgram(program, process.argv, "slimd");

function camelCase(flag: string): string {
  return flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
