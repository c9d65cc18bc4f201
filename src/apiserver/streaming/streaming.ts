import type { Clock, Logger } from "#base";
import { badRequest } from "#kinds";
import type { UpgradeRequest } from "../listen/mod.ts";

export interface StreamingDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Ties upgraded connections to exec, attach and port-forward sessions: WebSocket (`v5.channel.k8s.io` and older, SPDY
 * tunnelled for port-forward) and SPDY/3.1. The protocols' code is loaded when the first such request comes.
 */
export function createStreaming(deps: StreamingDeps): (request: UpgradeRequest) => Promise<void> {
  return async (request) => {
    const protocol = (request.req.headers.upgrade ?? "").toLowerCase();
    if (protocol === "websocket") {
      const { serveWebSocket } = await import("./websocket.ts");
      return serveWebSocket(request, deps);
    }
    if (protocol === "spdy/3.1") {
      const { serveSpdy } = await import("./spdy/serve.ts");
      return serveSpdy(request, deps);
    }
    throw badRequest(`unable to upgrade: unsupported protocol ${JSON.stringify(protocol)} in the Upgrade header`);
  };
}
