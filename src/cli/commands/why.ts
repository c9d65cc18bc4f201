import type { Command } from "commander";
import { createDiscovery, createPodStreams } from "#client";
import { diagnose, gatherEvidence, renderDiagnosis } from "#diagnosis";
import { EXIT, ExitError } from "../program.ts";
import { print, withDaemon } from "./engine.ts";

export function addWhyCommand(program: Command): void {
  program
    .command("why <kind/name>")
    .description(
      "tell why an object is not ready: the cause in one sentence, what shows it below (exit code 1 when it is not)",
    )
    .option("-n, --namespace <name>", "namespace of the object", "default")
    .option("-o, --output <format>", "json")
    .action((reference: string, options: { namespace: string; output?: string }) =>
      withDaemon(async ({ client, transport }) => {
        const [kind, name, ...rest] = reference.split("/");
        if (!kind || !name || rest.length > 0)
          throw new ExitError(EXIT.usage, `"${reference}" names no object; give kind/name, for example deployment/web`);
        const resource = await createDiscovery(client).named(kind);
        const namespace = resource.namespaced ? options.namespace : undefined;
        const object = await client.get(resource, name, { namespace });
        const streams = createPodStreams(transport, { userAgent: "slim" });
        const diagnosis = diagnose(await gatherEvidence({ client, streams }, { ...object, kind: resource.kind }));
        if (options.output === "json") print(diagnosis);
        else process.stdout.write(renderDiagnosis(diagnosis));
        if (!diagnosis.ready) process.exitCode = EXIT.failed;
      }),
    );
}
