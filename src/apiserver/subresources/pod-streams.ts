import type { Duplex } from "node:stream";
import {
  type ApiRequest,
  type ApiResponse,
  badRequest,
  failure,
  type LogOptions,
  type NodeConnector,
  notFound,
  type Pod,
  type PodRef,
} from "#kinds";
import { admissionOf, mutate, validate } from "../pipeline/admit.ts";
import type { Call } from "../pipeline/call.ts";
import { isTrue } from "../pipeline/request-info.ts";
import { keyOf } from "../registry/keys.ts";

/** `pods/log`, `exec`, `attach`, `portforward`: handed to the agent of the pod's node. @throws StatusError */
export async function podStream(call: Call): Promise<ApiResponse> {
  const { info, kind, server } = call;
  const stored = server.store.get(keyOf(kind, info.namespace, info.name));
  if (!stored) throw notFound(kind, info.name);
  const pod = stored.object as Pod;
  if (info.subresource === "log") return podLog(call, pod);
  const attributes = admissionOf(call, {
    operation: "CONNECT",
    object: connectOptions(call) as never,
    old: undefined,
    dryRun: false,
  });
  await mutate(call, attributes);
  await validate(call, attributes);
  return info.subresource === "portforward" ? portForward(call, pod) : execOrAttach(call, pod);
}

/** The query as the object that admission sees: PodExecOptions, PodAttachOptions, PodPortForwardOptions. */
function connectOptions({ kind, info, request: { query } }: Call): Record<string, unknown> {
  const name = kind.subresources.find((sub) => sub.name === info.subresource)?.kind;
  const options: Record<string, unknown> = { kind: name, apiVersion: "v1" };
  for (const flag of ["stdin", "stdout", "stderr", "tty"]) if (isTrue(query.get(flag))) options[flag] = true;
  const container = query.get("container");
  if (container) options.container = container;
  if (query.has("command")) options.command = query.getAll("command");
  if (query.has("ports"))
    options.ports = query
      .getAll("ports")
      .flatMap((text) => text.split(","))
      .map(Number);
  return options;
}

const refOf = ({ metadata }: Pod): PodRef => ({
  namespace: metadata.namespace ?? "",
  name: metadata.name ?? "",
  uid: metadata.uid ?? "",
});

/** @throws StatusError 400 for a pod without a node, 502 for a node that nobody answers for */
function agentOf({ server }: Call, pod: Pod): NodeConnector {
  const node = pod.spec?.nodeName;
  if (!node) throw badRequest(`pod ${pod.metadata.name} does not have a host assigned`);
  const agent = server.connector(node);
  if (!agent) throw failure(502, "BadGateway", `the agent of node ${node} is not connected`);
  return agent;
}

/** The container that is meant: the one that is named, the only one, or the one that an annotation makes the default. */
export function containerOf(pod: Pod, asked: string | null): string {
  const { containers = [], initContainers = [], ephemeralContainers = [] } = pod.spec ?? {};
  const all = [...initContainers, ...containers, ...ephemeralContainers].map(({ name }) => name);
  const { name } = pod.metadata;
  if (asked) {
    if (all.includes(asked)) return asked;
    throw badRequest(`container ${asked} is not valid for pod ${name}`);
  }
  const byDefault = pod.metadata.annotations?.["kubectl.kubernetes.io/default-container"];
  if (byDefault && all.includes(byDefault)) return byDefault;
  if (containers.length === 1) return containers[0]!.name;
  const names = (list: readonly { name: string }[]) => list.map((one) => one.name).join(" ");
  let message = `a container name must be specified for pod ${name}, choose one of: [${names(containers)}]`;
  if (initContainers.length > 0) message += ` or one of the init containers: [${names(initContainers)}]`;
  if (ephemeralContainers.length > 0) message += ` or one of the ephemeral containers: [${names(ephemeralContainers)}]`;
  throw badRequest(message);
}

async function podLog(call: Call, pod: Pod): Promise<ApiResponse> {
  const options = logOptionsOf(call.request, containerOf(pod, call.request.query.get("container")));
  // before a node has the pod there is nothing to show, and that is no error
  if (!pod.spec?.nodeName)
    return { code: 200, headers: {}, body: { kind: "bytes", bytes: Buffer.alloc(0), contentType: "text/plain" } };
  const signal = call.request.signal ?? new AbortController().signal;
  const stream = await agentOf(call, pod).logs(refOf(pod), options, signal);
  return { code: 200, headers: {}, body: { kind: "stream", stream, contentType: "text/plain" } };
}

/** PodLogOptions from a query. @throws StatusError 400, 422 */
function logOptionsOf({ query }: ApiRequest, container: string): LogOptions {
  const number = (name: string, least: number) => {
    const text = query.get(name);
    if (text === null || text === "") return undefined;
    if (!/^-?\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing "${text}": invalid syntax`);
    if (Number(text) < least)
      throw invalidLog(name, `Invalid value: ${text}: must be greater than ${least === 0 ? "or equal to 0" : "0"}`);
    return Number(text);
  };
  const sinceSeconds = number("sinceSeconds", 1);
  const tailLines = number("tailLines", 0);
  const limitBytes = number("limitBytes", 1);
  const sinceTime = query.get("sinceTime") || undefined;
  const stream = query.get("stream") || undefined;
  if (sinceSeconds !== undefined && sinceTime !== undefined)
    throw invalidLog("sinceSeconds", "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified");
  if (sinceTime !== undefined && Number.isNaN(Date.parse(sinceTime)))
    throw badRequest(`parsing time "${sinceTime}" as "2006-01-02T15:04:05Z07:00": cannot parse`);
  return {
    container,
    follow: isTrue(query.get("follow")),
    previous: isTrue(query.get("previous")),
    timestamps: isTrue(query.get("timestamps")),
    ...(sinceSeconds === undefined ? {} : { sinceSeconds }),
    ...(sinceTime === undefined ? {} : { sinceTime }),
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(limitBytes === undefined ? {} : { limitBytes }),
    ...(stream === undefined ? {} : { stream }),
  };
}

function invalidLog(field: string, message: string): Error {
  const reason = message.startsWith("Forbidden") ? "FieldValueForbidden" : "FieldValueInvalid";
  return failure(422, "Invalid", `PodLogOptions "" is invalid: ${field}: ${message}`, {
    kind: "PodLogOptions",
    causes: [{ reason, message, field }],
  });
}

function execOrAttach(call: Call, pod: Pod): ApiResponse {
  const { query } = call.request;
  const container = containerOf(pod, query.get("container"));
  const flags = {
    stdin: isTrue(query.get("stdin")),
    stdout: isTrue(query.get("stdout")),
    stderr: isTrue(query.get("stderr")),
    tty: isTrue(query.get("tty")),
  };
  // a terminal has one output
  const options = flags.tty ? { ...flags, stderr: false } : flags;
  if (!options.stdin && !options.stdout && !options.stderr)
    throw badRequest("you must specify at least 1 of stdin, stdout, stderr");
  const agent = agentOf(call, pod);
  const command = query.getAll("command");
  if (call.info.subresource === "exec" && command.length === 0)
    throw badRequest("you must specify at least 1 command for the container");
  const start = () =>
    call.info.subresource === "exec"
      ? agent.exec(refOf(pod), container, { ...options, command })
      : agent.attach(refOf(pod), container, options);
  return { code: 101, headers: {}, body: { kind: "session", session: { kind: "exec", options, start } } };
}

function portForward(call: Call, pod: Pod): ApiResponse {
  const agent = agentOf(call, pod);
  const ports = call.request.query
    .getAll("ports")
    .flatMap((text) => text.split(","))
    .filter(Boolean)
    .map(Number);
  const bad = ports.find((port) => !Number.isInteger(port) || port < 1 || port > 65535);
  if (bad !== undefined) throw badRequest(`invalid port ${bad}`);
  const connect = (port: number): Promise<Duplex> => agent.portForward(refOf(pod), port);
  return { code: 101, headers: {}, body: { kind: "session", session: { kind: "portforward", ports, connect } } };
}
