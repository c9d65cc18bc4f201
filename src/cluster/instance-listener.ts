import type { Clock, Logger } from "#base";
import {
  createIdentify,
  createListener,
  createStreaming,
  type Listener,
  type Pki,
  type TokenAuthenticator,
} from "#apiserver";
import { CodedError, hasCode } from "#base";
import type { Engine } from "#engine";
import type { ControlPlane } from "./control-plane.ts";
import { createEngineApi } from "./engine-api.ts";
import type { InstanceSettings } from "./instance.ts";
import type { InstanceNetwork } from "./network.ts";
import { readContainerLog } from "./node.ts";

export interface InstanceListenerDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The engine that `/engine/v1/` shows; absent without nodes. */
  readonly engine: Engine | undefined;
  /** Bearer tokens besides those of ServiceAccounts. */
  readonly tokens: readonly TokenAuthenticator[];
}

/** What answers on the sockets of an instance: the API, its streams, and the engine's own paths. */
export function createInstanceListener(
  plane: ControlPlane,
  { clock, logger, engine, tokens }: InstanceListenerDeps,
  settings: Pick<InstanceSettings, "kubeApi" | "kubeApiAddress">,
  network: InstanceNetwork,
): Listener {
  const started = clock.now();
  const engineApi =
    engine &&
    createEngineApi({
      engine,
      logger,
      info: () => ({
        pid: process.pid,
        startedAt: new Date(started).toISOString(),
        memoryMiB: Math.round(process.memoryUsage().rss / 2 ** 20),
        network,
        version: "v1.36.3+slim",
        api: settings.kubeApi ? `${settings.kubeApiAddress.host}:${settings.kubeApiAddress.port}` : "off",
      }),
      readLog: (container, options, signal) => readContainerLog({ engine, clock }, container, options, signal),
    });
  return createListener({
    clock,
    logger: logger.child({ part: "listener" }),
    handle: (request) => plane.server.handle(request),
    upgrade: createStreaming({ logger: logger.child({ part: "streaming" }), clock }),
    identify: createIdentify({ tokens: [...tokens, plane.tokens.authenticator], authorizer: plane.authorizer }),
    ...(engineApi ? { raw: { prefix: "/engine/v1/", handle: engineApi } } : {}),
  });
}

/**
 * Opens the TCP listeners: where the user wants it, and, for pods, at the host's address in the pod network. Gives the port;
 * undefined when TCP is off. @throws CodedError `address-unavailable`
 */
export async function listenTcp(
  listener: Listener,
  settings: Pick<InstanceSettings, "kubeApi" | "kubeApiAddress">,
  podAddress: string | undefined,
  pki: Pki,
): Promise<number | undefined> {
  if (!settings.kubeApi) return undefined;
  const { host, port } = settings.kubeApiAddress;
  const tls = { cert: pki.serving.cert, key: pki.serving.key, clientCa: pki.caCertificate };
  try {
    const bound = await listener.listenTls({ host: host || "0.0.0.0", port, ...tls });
    if (podAddress && host !== "" && host !== "0.0.0.0" && host !== "::")
      await listener.listenTls({ host: podAddress, port: bound.port, ...tls });
    return bound.port;
  } catch (cause) {
    if (!hasCode(cause, "EADDRINUSE", "EADDRNOTAVAIL", "EACCES")) throw cause;
    const why = hasCode(cause, "EADDRINUSE") ? "another program listens there" : (cause as Error).message;
    throw new CodedError("address-unavailable", `the API can't be served at ${host}:${port}: ${why}`, {
      cause,
      hint: "Choose another address with SLIM_KUBE_API_ADDR (port 0 takes a free one).",
    });
  }
}

/**
 * Opens the listener for programs of other hosts. It shows the authority beside its certificate, so that a client that knows the
 * authority's print can trust it. @throws CodedError `address-unavailable`
 */
export async function listenForHosts(
  listener: Listener,
  { host, port }: { readonly host: string; readonly port: number },
  pki: Pki,
): Promise<number> {
  try {
    const cert = `${pki.serving.cert}${pki.caCertificate}`;
    const tls = { cert, key: pki.serving.key, clientCa: pki.caCertificate };
    return (await listener.listenTls({ host: host || "0.0.0.0", port, ...tls })).port;
  } catch (cause) {
    if (!hasCode(cause, "EADDRINUSE", "EADDRNOTAVAIL", "EACCES")) throw cause;
    const why = hasCode(cause, "EADDRINUSE") ? "another program listens there" : (cause as Error).message;
    throw new CodedError("address-unavailable", `other hosts can't be served at ${host}:${port}: ${why}`, {
      cause,
      hint: "Choose another address with SLIM_TCP_ADDR (port 0 takes a free one).",
    });
  }
}
