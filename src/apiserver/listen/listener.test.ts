import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request as httpRequest } from "node:http";
import { Agent, request as httpsRequest, type RequestOptions } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { createFakeClock, silentLogger, systemClock } from "#base";
import { type ApiRequest, type ApiResponse, notFound, type WatchSink } from "#kinds";
import { createIdentify } from "../authn/mod.ts";
import { createMastersAuthorizer } from "../authz/mod.ts";
import { loadOrCreatePki } from "../pki/mod.ts";
import { createListener, type Listener } from "./listener.ts";

const pki = loadOrCreatePki(undefined, { clock: systemClock });
const stranger = loadOrCreatePki(undefined, { clock: systemClock });
const identify = createIdentify({ tokens: [], authorizer: createMastersAuthorizer() });
let sink: WatchSink | undefined;
let stopped = 0;
const held: ((response: ApiResponse) => void)[] = [];

const json = (object: unknown, code = 200): ApiResponse => ({ code, headers: {}, body: { kind: "object", object } });

function startWatch(to: WatchSink): { stop(): void } {
  sink = to;
  return { stop: () => void stopped++ };
}

async function handle(request: ApiRequest): Promise<ApiResponse> {
  switch (request.path) {
    case "/whoami":
      return json(request.user);
    case "/echo":
      return json({ bytes: request.body && "bytes" in request.body ? request.body.bytes.length : 0 });
    case "/big":
      return json({ text: "x".repeat(300_000) });
    case "/missing":
      throw notFound({ group: "", resource: "pods" }, "web");
    case "/broken":
      throw new TypeError("oops");
    case "/hold":
      return new Promise((resolve) => held.push(resolve));
    default:
      return {
        code: 200,
        headers: {},
        body: { kind: "watch", watch: { start: startWatch } },
      };
  }
}

let listener: Listener;
let port: number;
const dir = mkdtempSync(join(tmpdir(), "listen-"));
const socketPath = join(dir, "api.sock");

before(async () => {
  listener = createListener(
    { clock: systemClock, logger: silentLogger, handle, identify },
    { limits: { mutating: 4, readonly: 4 } },
  );
  ({ port } = await listener.listenTls({ host: "127.0.0.1", port: 0, ...pki.serving, clientCa: pki.caCertificate }));
  await listener.listenLocal(socketPath, { username: "local", groups: ["system:masters"] });
});
after(async () => {
  await listener.close(100);
  rmSync(dir, { recursive: true });
});

interface Answer {
  code: number;
  headers: IncomingMessage["headers"];
  body: Buffer;
  json(): Record<string, unknown>;
}

function call(options: RequestOptions & { body?: string | Buffer } = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { body, ...rest } = options;
    const send = rest.socketPath ? httpRequest : httpsRequest;
    const req = send({ host: "127.0.0.1", port, ca: pki.caCertificate, ...rest }, async (res) => {
      const chunks: Buffer[] = [];
      for await (const chunk of res) chunks.push(chunk as Buffer);
      const bytes = Buffer.concat(chunks);
      resolve({
        code: res.statusCode ?? 0,
        headers: res.headers,
        body: bytes,
        json: () => JSON.parse(bytes.toString()) as Record<string, unknown>,
      });
    });
    req.on("error", reject);
    req.end(body);
  });
}

test("a client certificate names the user and its groups, also when its TLS session is resumed", async () => {
  const agent = new Agent({ keepAlive: false, maxCachedSessions: 10 });
  const fingerprint = createHash("sha256").update(new X509Certificate(pki.admin.cert).raw).digest("hex");
  const expected = {
    username: "kubernetes-admin",
    groups: ["system:masters", "system:authenticated"],
    extra: { "authentication.kubernetes.io/credential-id": [`X509SHA256=${fingerprint}`] },
  };
  for (let i = 0; i < 3; i++) {
    const answer = await call({ path: "/whoami", agent, ...pki.admin });
    assert.deepEqual(answer.json(), expected);
    assert.match(String(answer.headers["audit-id"]), /^[0-9a-f-]{36}$/);
    assert.equal(answer.headers["cache-control"], "no-cache, private");
  }
});

test("nobody's request is anonymous; a certificate of another authority and an unknown token are refused", async () => {
  assert.deepEqual((await call({ path: "/whoami" })).json(), {
    username: "system:anonymous",
    groups: ["system:unauthenticated"],
  });
  const foreign = await call({ path: "/whoami", ...stranger.admin });
  assert.equal(foreign.code, 401);
  assert.equal(foreign.json().reason, "Unauthorized");
  assert.equal((await call({ path: "/whoami", headers: { authorization: "Bearer nonsense" } })).code, 401);
});

test("the local socket is private and vouches for its user", async () => {
  assert.equal(statSync(socketPath).mode & 0o777, 0o600);
  const answer = await call({ path: "/whoami", socketPath });
  assert.equal(answer.json().username, "local");
});

test("a socket file left by a crash is replaced, one that is served is not", async () => {
  const stale = join(dir, "stale.sock");
  // A process that is killed leaves its socket file.
  spawnSync(process.execPath, [
    "-e",
    `require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))`,
    stale,
  ]);
  assert.ok(statSync(stale).isSocket());
  const second = createListener({ clock: systemClock, logger: silentLogger, handle, identify });
  await second.listenLocal(stale, { username: "x", groups: [] });
  await assert.rejects(second.listenLocal(socketPath, { username: "x", groups: [] }), { code: "in-use" });
  const precious = join(dir, "precious.txt");
  writeFileSync(precious, "data");
  await assert.rejects(second.listenLocal(precious, { username: "x", groups: [] }), { code: "in-use" });
  await second.close(0);
});

test("impersonation needs permission and takes on user and groups", async () => {
  const headers = { "impersonate-user": "system:serviceaccount:ns1:robot", "impersonate-extra-scopes": "view" };
  const answer = await call({ path: "/whoami", headers, ...pki.admin });
  assert.deepEqual(answer.json(), {
    username: "system:serviceaccount:ns1:robot",
    groups: ["system:serviceaccounts", "system:serviceaccounts:ns1", "system:authenticated"],
    extra: { scopes: ["view"] },
  });
  const refused = await call({ path: "/whoami", headers: { "impersonate-user": "jane" } });
  assert.equal(refused.code, 403);
  assert.equal(
    refused.json().message,
    'users "jane" is forbidden: User "system:anonymous" cannot impersonate resource "users" in API group "" at the cluster scope',
  );
});

test("errors are Status objects", async () => {
  const missing = await call({ path: "/missing" });
  assert.equal(missing.code, 404);
  assert.equal(missing.json().message, 'pods "web" not found');
  const broken = await call({ path: "/broken" });
  assert.equal(broken.code, 500);
  assert.equal(broken.json().message, "Internal error occurred: oops");
  assert.equal((await call({ path: "/%zz" })).code, 400);
});

test("a body beyond 3 MiB is refused, announced or not", async () => {
  const body = Buffer.alloc(3 * 1024 * 1024 + 1);
  for (const headers of [{ "content-length": String(body.length) }, { "transfer-encoding": "chunked" }]) {
    const answer = await call({ path: "/echo", method: "POST", body, headers, ...pki.admin }).catch(
      (error: Error) => error,
    );
    // A client that is still sending may see the connection end first.
    if (!(answer instanceof Error)) assert.equal(answer.code, 413);
  }
  const fits = await call({ path: "/echo", method: "POST", body: body.subarray(1), ...pki.admin });
  assert.deepEqual(fits.json(), { bytes: 3 * 1024 * 1024 });
});

test("a big answer is compressed for who accepts it", async () => {
  const plain = await call({ path: "/big" });
  const small = await call({ path: "/big", headers: { "accept-encoding": "gzip" } });
  assert.equal(plain.headers["content-encoding"], undefined);
  assert.equal(small.headers["content-encoding"], "gzip");
  assert.ok(small.body.length < 10_000);
  assert.deepEqual(gunzipSync(small.body), plain.body);
});

test("one user cannot take all places, and is told to come back", async () => {
  const first = [call({ path: "/hold" }), call({ path: "/hold" })];
  while (held.length < 2) await new Promise((resolve) => setImmediate(resolve));
  const refused = await call({ path: "/hold" });
  assert.equal(refused.code, 429);
  assert.equal(refused.headers["retry-after"], "1");
  assert.equal((await call({ path: "/whoami", ...pki.admin })).code, 200);
  for (const resolve of held.splice(0)) resolve(json({}));
  for (const answer of await Promise.all(first)) assert.equal(answer.code, 200);
  assert.equal((await call({ path: "/whoami" })).code, 200);
});

test("watch events come as one JSON line each, and the watch is stopped when the client goes", async () => {
  const frames: string[] = [];
  const req = httpsRequest({ host: "127.0.0.1", port, path: "/api/v1/pods?watch=1", ca: pki.caCertificate });
  req.end();
  const res = await new Promise<IncomingMessage>((resolve) => req.on("response", resolve));
  const frame = Buffer.from('{"type":"ADDED","object":{}}\n');
  sink?.event({ type: "ADDED", object: {} }, () => frame);
  sink?.event({ type: "ADDED", object: {} }, () => frame);
  for await (const chunk of res) {
    frames.push(String(chunk));
    if (frames.join("").length === 2 * frame.length) break;
  }
  assert.equal(frames.join(""), String(frame).repeat(2));
  const before = stopped;
  req.destroy();
  while (stopped === before) await new Promise((resolve) => setTimeout(resolve, 5));
});

test("a request past its deadline is answered with 504", async () => {
  const clock = createFakeClock();
  const slow = createListener({ clock, logger: silentLogger, handle, identify });
  const { port: at } = await slow.listenTls({
    host: "127.0.0.1",
    port: 0,
    ...pki.serving,
    clientCa: pki.caCertificate,
  });
  const answer = call({ path: "/hold", port: at });
  while (held.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await clock.advance(60_000);
  assert.equal((await answer).code, 504);
  held.splice(0);
  const closing = slow.close(0);
  await clock.advance(1);
  await closing;
});

test("garbage on the wire harms nobody", async () => {
  await new Promise<void>((resolve) => {
    const raw = connect(port, "127.0.0.1", () => raw.write("GARBAGE\r\n\r\n"));
    raw.on("error", () => undefined);
    raw.on("close", () => resolve());
    raw.resume();
  });
  await new Promise<void>((resolve) => {
    const raw = connect(socketPath, () => raw.write("GARBAGE\r\n\r\n"));
    raw.on("error", () => undefined);
    raw.on("close", () => resolve());
    raw.resume();
  });
  assert.equal((await call({ path: "/whoami" })).code, 200);
});

test("close() ends running watches", async () => {
  const own = createListener({ clock: systemClock, logger: silentLogger, handle, identify });
  const { port: at } = await own.listenTls({ host: "127.0.0.1", port: 0, ...pki.serving, clientCa: pki.caCertificate });
  const watching = call({ path: "/api/v1/pods?watch=1", port: at });
  const before = stopped;
  while (stopped === before) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    await own.close(1000);
  }
  assert.equal((await watching).code, 200);
});
