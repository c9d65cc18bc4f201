// `npm start`: boots slim, applies the example and shows it.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { applyObjects, readConfig, readManifests } from "#cluster";
import { resources } from "#kinds";
import { retry, waitAll } from "./commands/lifecycle.ts";
import { type DaemonConnection, ensureDaemon } from "./daemon.ts";
import { createProgram, runProgram } from "./program.ts";
import { formatTable, type Table } from "./table.ts";

const program = createProgram("hello", "Starts slim with its example, waits until all is ready, and shows it.").action(
  hello,
);
await runProgram(program, process.argv, "slim");

async function hello(): Promise<void> {
  const config = readConfig(process.env);
  const home = join(import.meta.dirname, "..");
  const step = (text: string) => process.stderr.write(`${text}\n`);
  const begin = performance.now();
  const daemon = await ensureDaemon(config);
  try {
    step(daemon.started ? `slimd started (${seconds(begin)})` : "slimd runs already");
    const objects = await readManifests(join(home, "examples/hello.yaml"), async () => "");
    const applied = await applyObjects(daemon.client, objects, { fieldManager: "slim", namespace: "default", retry });
    await waitAll(daemon, applied, 120_000, step);
    step(`all is ready (${seconds(begin)})\n`);
    await show(daemon);
    const kubeconfig = join(config.dataDir, "kubeconfig");
    process.stdout.write(`\nKubeconfig: ${kubeconfig}\nTry next:   export KUBECONFIG=${kubeconfig}\n`);
    for (const line of [
      "kubectl get pods -o wide",
      "kubectl logs -l app=hello",
      "kubectl scale deployment/hello --replicas 5",
      "bin/slim ps",
      "bin/slim down",
    ])
      process.stdout.write(`            ${line}\n`);
  } finally {
    daemon.close();
  }
}

async function show(daemon: DaemonConnection): Promise<void> {
  const table = (await daemon.client.request({
    method: "GET",
    path: "/api/v1/namespaces/default/pods",
    headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" },
  })) as Table;
  process.stdout.write(formatTable(table));
  const pods = await daemon.client.list(resources.pods, { namespace: "default", labelSelector: "app=hello" });
  const pod = pods.items.find((item) => item.status?.phase === "Running");
  const service = await daemon.client.get(resources.services, "hello", { namespace: "default" });
  const url = `http://${service.spec?.clusterIP}/`;
  const answer = execFileSync("busybox", ["timeout", "5", "wget", "-q", "-O", "-", url], { encoding: "utf8" });
  process.stdout.write(`\nService hello at ${url} answers: ${answer}`);
  if (!pod) return;
  process.stdout.write(`Log of pod ${pod.metadata.name}: `);
  await daemon.pipe(`/api/v1/namespaces/default/pods/${pod.metadata.name}/log`, { tailLines: "1" }, process.stdout);
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
