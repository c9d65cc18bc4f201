import { commands } from "./commands/mod.ts";
import type { CommandSpec } from "./context.ts";

/** What `kubectl-slim` alone prints. */
export function overview(): string {
  const lines = [...commands]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, short }) => `  ${name.padEnd(16)}${short}`);
  return `kubectl-slim controls a slim instance, or any Kubernetes cluster.\n\nCommands:\n${lines.join("\n")}\n\nUse "kubectl-slim <command> --help" for more information about a given command.\n`;
}

export function helpOf(spec: CommandSpec, command: string): string {
  const parts = [spec.short, "", "Usage:", `  ${command.replace(/ \S+$/, "")} ${spec.usage}`];
  if (spec.subcommands)
    parts.push("", "Commands:", ...spec.subcommands.map(({ name, short }) => `  ${name.padEnd(16)}${short}`));
  if (spec.flags?.length)
    parts.push(
      "",
      "Options:",
      ...spec.flags.map(
        ({ name, short, usage }) => `  ${`${short ? `-${short}, ` : "    "}--${name}`.padEnd(34)}${usage}`,
      ),
    );
  return `${parts.join("\n")}\n`;
}
