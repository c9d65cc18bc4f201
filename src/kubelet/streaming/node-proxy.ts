import { constants } from "node:fs";
import { lstat, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "#base";
import { failure, type NodeConnector } from "#kinds";
import type { ConnectorDeps } from "../ports.ts";
import { resolveSubPath } from "../volumes/sub-path.ts";
import { cadvisorMetrics, kubeletMetrics, resourceMetrics } from "./metrics.ts";
import { nodeSummary } from "./summary.ts";

export interface NodeProxyOptions {
  readonly nodeName: string;
  /** The kubelet's configuration as `configz` shows it: `KubeletConfiguration` of kubelet.config.k8s.io/v1beta1. */
  readonly configuration: Readonly<Record<string, unknown>>;
  /** Directory that `logs/` shows. Default `/var/log`. */
  readonly hostLogs?: string;
  /** Whether the kubelet is well; a text tells why not. Default: it is. */
  readonly healthy?: () => string | undefined;
}

type Answer = Awaited<ReturnType<NodeConnector["proxy"]>>;

/**
 * The pages of a node that `GET nodes/<name>/proxy/<path>` reaches.
 *
 * Source: https://kubernetes.io/docs/reference/access-authn-authz/kubelet-authn-authz/, https://kubernetes.io/docs/reference/instrumentation/node-metrics/
 */
export function createNodeProxy(deps: ConnectorDeps, options: NodeProxyOptions): NodeConnector["proxy"] {
  const text = async (body: string | Promise<string>): Promise<Answer> =>
    answer("text/plain; charset=utf-8", await body);
  const metrics = async (body: string | Promise<string>): Promise<Answer> =>
    answer("text/plain; version=0.0.4; charset=utf-8", await body);
  const json = (body: unknown): Answer => answer("application/json", JSON.stringify(body));
  const pages: Readonly<Record<string, (query: URLSearchParams) => Answer | Promise<Answer>>> = {
    healthz: () => {
      const why = options.healthy?.();
      return why === undefined ? text("ok") : { ...answer("text/plain; charset=utf-8", why), code: 500 };
    },
    configz: () => json({ kubeletconfig: options.configuration }),
    pods: () => json({ kind: "PodList", apiVersion: "v1", metadata: {}, items: deps.runtime.pods() }),
    runningpods: () => json({ kind: "PodList", apiVersion: "v1", metadata: {}, items: running(deps) }),
    metrics: () => metrics(kubeletMetrics(deps, options.nodeName)),
    "metrics/resource": () => metrics(resourceMetrics(deps)),
    "metrics/cadvisor": () => metrics(cadvisorMetrics(deps)),
    "metrics/probes": () => metrics(""),
    "stats/summary": async (query) =>
      json(await nodeSummary(deps, options.nodeName, { brief: query.get("only_cpu_and_memory") === "true" })),
  };
  return async (path, query) => {
    const name = path.replace(/^\/+/, "");
    if (name === "logs" || name.startsWith("logs/")) {
      return hostLog(options.hostLogs ?? "/var/log", name.slice("logs".length));
    }
    const page = pages[name.replace(/\/+$/, "")];
    if (!page) throw missing();
    return page(query);
  };
}

const answer = (contentType: string, body: string): Answer => ({ code: 200, contentType, body: Buffer.from(body) });

const missing = () => failure(404, "NotFound", "the server could not find the requested resource");

function running({ runtime }: ConnectorDeps): unknown[] {
  return runtime.pods().flatMap((pod) => {
    const { name, namespace, uid = "" } = pod.metadata;
    const containers = pod.spec.containers.filter(({ name }) => runtime.container(uid, name)?.state === "running");
    return containers.length === 0
      ? []
      : [
          {
            metadata: { name, namespace, uid },
            spec: { containers: containers.map(({ name, image }) => ({ name, image, resources: {} })) },
            status: {},
          },
        ];
  });
}

const MAX_FILE = 64 << 20;

/** A file below the directory of logs, or a list of a directory there. Nothing outside can be reached. */
async function hostLog(root: string, path: string): Promise<Answer> {
  try {
    const at = join(root, await resolveSubPath(root, path.replace(/^\/+/, ""), { create: false }));
    if ((await lstat(at)).isDirectory()) return answer("text/html; charset=utf-8", await listing(at));
    await using file = await open(at, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const info = await file.stat();
    if (!info.isFile()) throw missing();
    const length = Math.min(info.size, MAX_FILE);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, info.size - length);
    return { code: 200, contentType: "text/plain; charset=utf-8", body: buffer.subarray(0, bytesRead) };
  } catch (error) {
    if (
      hasCode(error, "ENOENT", "ENOTDIR", "EACCES") ||
      (error instanceof Error && !("status" in error) && !("code" in error))
    ) {
      throw missing();
    }
    throw error;
  }
}

async function listing(directory: string): Promise<string> {
  const entries = await readdir(directory, { withFileTypes: true });
  const lines = entries
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort()
    .map((name) => `<a href="${encodeURI(name)}">${escapeHtml(name)}</a>\n`);
  return `<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n${lines.join("")}</pre>\n`;
}

const escapeHtml = (name: string) => name.replace(/[&<>"]/g, (character) => `&#${character.codePointAt(0)};`);
