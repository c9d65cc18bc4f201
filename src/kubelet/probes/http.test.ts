import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { dialTcp, ProbeTimeout } from "./dial.ts";
import { httpTarget, probeHttp } from "./http.ts";

async function listen(t: TestContext, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

const serve = (t: TestContext, listener: RequestListener) => listen(t, createServer(listener));

const probe = (port: number, action: object = {}, signal: AbortSignal = new AbortController().signal) =>
  probeHttp(dialTcp, httpTarget({ port, ...action }, port, "127.0.0.1", "probe"), signal);

describe("probeHttp()", () => {
  for (const code of [200, 204, 399]) {
    it(`${code} is a success`, async (t) => {
      const port = await serve(t, (_request, response) => response.writeHead(code).end());
      assert.deepEqual(await probe(port), { result: "success" });
    });
  }
  for (const code of [400, 404, 500, 503]) {
    it(`${code} is a failure`, async (t) => {
      const port = await serve(t, (_request, response) => response.writeHead(code).end("why"));
      assert.deepEqual(await probe(port), {
        result: "failure",
        output: `HTTP probe failed with statuscode: ${code}`,
      });
    });
  }

  it("follows redirects on the same host, not to another", async (t) => {
    const paths: string[] = [];
    const port = await serve(t, (request, response) => {
      paths.push(request.url ?? "");
      if (request.url === "/") response.writeHead(302, { location: "/next" }).end();
      else if (request.url === "/away") response.writeHead(302, { location: "http://example.com/" }).end("gone");
      else response.writeHead(200).end();
    });
    assert.deepEqual(await probe(port), { result: "success" });
    assert.deepEqual(paths, ["/", "/next"]);
    assert.deepEqual(await probe(port, { path: "/away" }), {
      result: "warning",
      output: "Probe terminated redirects, Response body: gone",
    });
  });

  it("gives up after ten redirects", async (t) => {
    const port = await serve(t, (_request, response) => response.writeHead(302, { location: "/again" }).end());
    assert.deepEqual(await probe(port), {
      result: "failure",
      output: `Get "http://127.0.0.1:${port}/again": stopped after 10 redirects`,
    });
  });

  it("sends its headers, repeated ones too, and a Host of their own", async (t) => {
    let seen: NodeJS.Dict<string | string[]> = {};
    let raw: string[] = [];
    const port = await serve(t, (request, response) => {
      seen = request.headers;
      raw = request.rawHeaders;
      response.end();
    });
    const httpHeaders = [
      { name: "X-A", value: "1" },
      { name: "X-A", value: "2" },
      { name: "Host", value: "shop.example" },
    ];
    assert.deepEqual(await probe(port, { httpHeaders }), { result: "success" });
    assert.equal(seen["user-agent"], "kube-probe/1.36");
    assert.equal(seen["accept"], "*/*");
    assert.equal(seen["host"], "shop.example");
    assert.equal(seen["x-a"], "1, 2");
    assert.equal(raw.filter((name) => name === "X-A").length, 2);
  });

  it("reads no more than it has to of a large answer", async (t) => {
    const port = await serve(t, (_request, response) => {
      response.writeHead(200);
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(1 << 16)));
      };
      response.on("drain", more);
      more();
    });
    assert.deepEqual(await probe(port), { result: "success" });
  });

  it("says why there is no answer", async (t) => {
    const closed = await listen(
      t,
      createTcpServer((socket) => socket.on("error", () => {}).destroy()),
    );
    const reset = await probe(closed);
    assert.equal(reset.result, "failure");
    const free = createTcpServer();
    await new Promise<void>((resolve) => free.listen(0, "127.0.0.1", resolve));
    const { port } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    assert.deepEqual(await probe(port), {
      result: "failure",
      output: `Get "http://127.0.0.1:${port}/": dial tcp 127.0.0.1:${port}: connect: connection refused`,
    });
  });

  it("names an HTTP server that was asked for HTTPS", async (t) => {
    const port = await serve(t, (_request, response) => response.end());
    assert.deepEqual(await probe(port, { scheme: "HTTPS" }), {
      result: "failure",
      output: `Get "https://127.0.0.1:${port}/": http: server gave HTTP response to HTTPS client`,
    });
  });

  it("ends when its time is up", async (t) => {
    const limit = new AbortController();
    const port = await serve(t, () => limit.abort(new ProbeTimeout("too late")));
    assert.deepEqual(await probe(port, {}, limit.signal), {
      result: "failure",
      output: `Get "http://127.0.0.1:${port}/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`,
    });
  });
});
