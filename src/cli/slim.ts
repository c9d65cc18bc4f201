#!/usr/bin/env -S node --no-warnings
// slim: starts, stops and looks at an instance and its engine.
import { CONFIG_VARIABLES } from "#cluster";
import { addEngineCommands } from "./commands/engine.ts";
import { addImageCommands } from "./commands/image.ts";
import { addLifecycleCommands } from "./commands/lifecycle.ts";
import { addWhyCommand } from "./commands/why.ts";
import { createProgram, runProgram } from "./program.ts";

const program = createProgram("slim", "Kubernetes small enough to embed.");
addLifecycleCommands(program);
addEngineCommands(program);
addImageCommands(program);
addWhyCommand(program);
program.addHelpText("after", () => {
  const lines = Object.entries(CONFIG_VARIABLES).map(([name, text]) => `  ${name.padEnd(22)}${text}`);
  return `\nEnvironment:\n${lines.join("\n")}\n\nExit codes: 0 done, 1 failed, 2 used wrongly, 3 not there or not running.`;
});
await runProgram(program, process.argv, "slim");
