import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { dialTcp, ProbeTimeout } from "./dial.ts";
import { probeGrpc } from "./grpc.ts";

type Handler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, message: Buffer) => void;

/** A server that hands each complete call to `handler`. @returns its port */
async function serve(t: TestContext, handler: Handler): Promise<number> {
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => handler(stream, headers, Buffer.concat(chunks)));
    stream.on("error", () => {});
  });
  return listen(t, server as unknown as Server);
}

async function listen(t: TestContext, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

const answer = (stream: ServerHttp2Stream, status: number | undefined, code = 0, message = "") => {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": String(code), "grpc-message": message }));
  const body = status === undefined ? [] : [0, 0, 0, 0, status === 0 ? 0 : 2, ...(status === 0 ? [] : [8, status])];
  stream.end(Buffer.from(body));
};

const probe = (port: number, service = "", signal: AbortSignal = new AbortController().signal) =>
  probeGrpc(dialTcp, { host: "127.0.0.1", port, service, timeoutMs: 1000 }, signal);

describe("probeGrpc()", () => {
  for (const [name, status, code, message, expected] of [
    ["SERVING", 1, 0, "", { result: "success" }],
    ["NOT_SERVING", 2, 0, "", { result: "failure", output: 'service unhealthy (responded with "NOT_SERVING")' }],
    ["UNKNOWN", 0, 0, "", { result: "failure", output: 'service unhealthy (responded with "UNKNOWN")' }],
    [
      "a service that it does not know",
      undefined,
      5,
      "unknown service",
      {
        result: "failure",
        output: "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service",
      },
    ],
    [
      "no health protocol",
      undefined,
      12,
      "unknown method",
      {
        result: "failure",
        output:
          "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown method",
      },
    ],
  ] as const) {
    it(name, async (t) => {
      const port = await serve(t, (stream) => answer(stream, status, code, message));
      assert.deepEqual(await probe(port), expected);
    });
  }

  it("asks Check for the named service", async (t) => {
    let asked: unknown;
    const port = await serve(t, (stream, headers, message) => {
      asked = [
        headers[":path"],
        headers["content-type"],
        headers["user-agent"],
        message.subarray(5).toString("latin1"),
      ];
      answer(stream, 1);
    });
    assert.deepEqual(await probe(port, "shop"), { result: "success" });
    assert.deepEqual(asked, ["/grpc.health.v1.Health/Check", "application/grpc", "kube-probe/1.36", "\n\u0004shop"]);
  });

  it("a server that does not speak HTTP/2, or that is not there, cannot be connected to", async (t) => {
    const port = await listen(
      t,
      createTcpServer((socket) => socket.on("error", () => {}).end("HTTP/1.1 400 Bad Request\r\n\r\n")),
    );
    const expected = {
      result: "failure",
      output: `timeout: failed to connect service "127.0.0.1:${port}" within 1s: context deadline exceeded`,
    };
    assert.deepEqual(await probe(port), expected);
  });

  it("an answer that does not come is a timeout", async (t) => {
    const limit = new AbortController();
    const port = await serve(t, () => limit.abort(new ProbeTimeout("too late")));
    assert.deepEqual(await probe(port, "", limit.signal), {
      result: "failure",
      output: "timeout: health rpc did not complete within 1s",
    });
  });
});
