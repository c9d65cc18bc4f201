/** What is measured: a slimd of its own (started here, purged at the end), or any cluster that a kubeconfig names. */
import { readFileSync } from "node:fs";
import https from "node:https";
import { parse } from "yaml";
import { startInstance } from "../../test/support/instance.ts";
import { type Processes, processesOf } from "./processes.ts";

export interface Answer {
  readonly bytes: number;
  text(): string;
}

export interface BenchCluster extends AsyncDisposable {
  readonly server: string;
  /** slimd and what it started; absent for a foreign cluster. */
  readonly processes?: Processes;
  /** One request over a kept-alive connection of the agent. @throws Error with status and body unless 2xx */
  call(agent: https.Agent, method: string, path: string, body?: unknown, headers?: Headers): Promise<Answer>;
  /** Opens a watch; `onEvent` gets each line. Resolves when the server has answered. */
  watch(path: string, onEvent: (line: string) => void, agent?: https.Agent): Promise<{ close(): void }>;
}

type Headers = Readonly<Record<string, string>>;

/** @param kubeconfig a foreign cluster; absent: an instance of our own */
export async function openCluster(kubeconfig?: string, env: NodeJS.ProcessEnv = {}): Promise<BenchCluster> {
  if (kubeconfig) return { ...connect(kubeconfig), async [Symbol.asyncDispose]() {} };
  const instance = await startInstance({ SLIM_LOG_LEVEL: "error", ...env });
  return {
    ...connect(instance.kubeconfig),
    processes: processesOf(instance.pid()),
    [Symbol.asyncDispose]: () => instance[Symbol.asyncDispose](),
  };
}

export function agentOf(maxSockets: number): https.Agent {
  return new https.Agent({ keepAlive: true, maxSockets });
}

function connect(kubeconfig: string): Pick<BenchCluster, "server" | "call" | "watch"> {
  const config = parse(readFileSync(kubeconfig, "utf8"));
  const context = config.contexts.find(({ name }: { name: string }) => name === config["current-context"]).context;
  const { cluster } = config.clusters.find(({ name }: { name: string }) => name === context.cluster);
  const { user } = config.users.find(({ name }: { name: string }) => name === context.user);
  const pem = (data?: string, file?: string) =>
    data ? Buffer.from(data, "base64") : file ? readFileSync(file) : undefined;
  const { hostname: host, port } = new URL(cluster.server);
  const target = {
    host,
    port,
    ca: pem(cluster["certificate-authority-data"], cluster["certificate-authority"]),
    cert: pem(user["client-certificate-data"], user["client-certificate"]),
    key: pem(user["client-key-data"], user["client-key"]),
  };
  const always: Headers = {
    accept: "application/json",
    ...(user.token ? { authorization: `Bearer ${user.token}` } : {}),
  };
  return {
    server: cluster.server,
    call: (agent, method, path, body, headers) =>
      new Promise((resolve, reject) => {
        const data = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
        const length = data && { "content-type": "application/json", "content-length": String(data.length) };
        const options = { ...target, agent, method, path, headers: { ...always, ...length, ...headers } };
        const request = https.request(options, (response) => {
          const chunks: Buffer[] = [];
          let bytes = 0;
          response.on("data", (chunk: Buffer) => {
            bytes += chunk.length;
            chunks.push(chunk);
          });
          response.on("error", reject);
          response.on("end", () => {
            const text = () => Buffer.concat(chunks).toString();
            if ((response.statusCode ?? 500) < 300) resolve({ bytes, text });
            else reject(new Error(`${method} ${path}: ${response.statusCode} ${text().slice(0, 300)}`));
          });
        });
        request.on("error", reject);
        request.end(data);
      }),
    watch: (path, onEvent, agent = new https.Agent()) =>
      new Promise((resolve, reject) => {
        let open = true;
        const request = https.get({ ...target, agent, path, headers: always }, (response) => {
          let rest = "";
          response.on("data", (chunk: Buffer) => {
            const lines = (rest + chunk).split("\n");
            rest = lines.pop() ?? "";
            for (const line of lines) onEvent(line);
          });
          response.on("error", (error) => open && reject(error));
          resolve({
            close() {
              open = false;
              request.destroy();
            },
          });
        });
        request.on("error", (error) => open && reject(error));
      }),
  };
}
