import { createSocket, type Socket } from "node:dgram";
import { createServer, type Server } from "node:net";
import { type Answer, decode, encode, type Packet, RECURSION_AVAILABLE, RECURSION_DESIRED } from "dns-packet";
import { type Clock, type Logger, messageOf } from "#base";
import type { Informers } from "#client";
import { factsFrom } from "./facts.ts";
import { type DnsFacts, resolve, type Resolution, soa } from "./records.ts";
import { askUpstream, framed } from "./upstream.ts";

export interface DnsDeps {
  readonly informers: Informers;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface DnsOptions {
  /** Address to listen at, UDP and TCP. */
  readonly address: string;
  /** Default 53. */
  readonly port?: number;
  /** Default `cluster.local`. */
  readonly zone?: string;
  /** Resolvers for all other names, asked in order. */
  readonly upstream: readonly string[];
}

export interface DnsServer extends AsyncDisposable {
  readonly port: number;
}

const RCODE = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3 };
const AUTHORITATIVE = 1 << 10;
const TRUNCATED = 1 << 9;
/** Bytes of an answer over UDP when the client names no size. */
const PLAIN_SIZE = 512;
const MAX_UDP_SIZE = 1232;
const IDLE = 10_000;

/** The cluster's DNS: Services and pods from the informers, everything else from the host's resolvers. */
export async function startDns(deps: DnsDeps, options: DnsOptions): Promise<DnsServer> {
  const zone = options.zone ?? "cluster.local";
  const { facts, synced } = factsFrom(deps.informers);
  const stopping = new AbortController();
  const ready = synced(stopping.signal);
  ready.catch(() => {});
  const reply = async (message: Buffer, protocol: "udp" | "tcp"): Promise<Buffer | undefined> => {
    await ready;
    return answer(message, protocol, { ...deps, facts, zone, upstream: options.upstream });
  };
  const udp = await listenUdp(options, reply, deps.logger);
  const { port } = udp.address();
  const tcp = await listenTcp({ ...options, port }, reply, deps.logger).catch((error: unknown) => {
    udp.close();
    throw error;
  });
  return {
    port,
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error("the DNS server stops"));
      udp.close();
      await new Promise((done) => tcp.close(done));
    },
  };
}

type Reply = (message: Buffer, protocol: "udp" | "tcp") => Promise<Buffer | undefined>;

function listenUdp(options: DnsOptions, reply: Reply, logger: Logger): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createSocket("udp4");
    socket.once("error", reject);
    socket.on("message", (message, peer) => {
      reply(message, "udp").then(
        (bytes) => bytes && socket.send(bytes, peer.port, peer.address),
        (error: unknown) => logger.debug("a question was not answered", { why: messageOf(error) }),
      );
    });
    socket.bind(options.port ?? 53, options.address, () => {
      socket.off("error", reject);
      socket.on("error", (error) => logger.warn("the DNS socket failed", { error }));
      socket.unref();
      resolve(socket);
    });
  });
}

function listenTcp(options: DnsOptions, reply: Reply, logger: Logger): Promise<Server> {
  const server = createServer((socket) => {
    let data = Buffer.alloc(0);
    socket.setTimeout(IDLE, () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      data = Buffer.concat([data, chunk]);
      while (data.length >= 2 && data.length >= 2 + data.readUInt16BE(0)) {
        const message = data.subarray(2, 2 + data.readUInt16BE(0));
        data = data.subarray(2 + message.length);
        reply(message, "tcp").then(
          (bytes) => bytes && socket.writable && socket.write(framed(bytes)),
          (error: unknown) => logger.debug("a question was not answered", { why: messageOf(error) }),
        );
      }
    });
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.address, () => {
      server.off("error", reject);
      server.unref();
      resolve(server);
    });
  });
}

interface AnswerContext {
  readonly facts: DnsFacts;
  readonly zone: string;
  readonly upstream: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Undefined for what is no question: it gets no answer. */
async function answer(message: Buffer, protocol: "udp" | "tcp", context: AnswerContext): Promise<Buffer | undefined> {
  let query: Packet;
  try {
    query = decode(message);
  } catch {
    return undefined;
  }
  const [question] = query.questions ?? [];
  if (query.type !== "query" || !question) return undefined;
  const found = resolve(question, context.zone, context.facts);
  if (found) return fitted(query, await followed(found, question.type, context), protocol, context.zone);
  try {
    return await askUpstream(message, context.upstream, protocol, context.clock);
  } catch (error) {
    context.logger.debug("no resolver answered", { name: question.name, why: messageOf(error) });
    return encode({
      type: "response",
      id: query.id ?? 0,
      flags: RECURSION_DESIRED | RECURSION_AVAILABLE | RCODE.SERVFAIL,
      questions: [question],
    });
  }
}

/** An alias's own addresses, so that the client need not ask again. */
async function followed(found: Resolution, type: string | undefined, context: AnswerContext): Promise<Resolution> {
  if (!found.alias || type === "CNAME") return found;
  const inside = resolve({ name: found.alias, type: type as "A" }, context.zone, context.facts);
  if (inside) return { ...found, answers: [...found.answers, ...inside.answers] };
  const question = encode({
    type: "query",
    id: 1,
    flags: RECURSION_DESIRED,
    questions: [{ type: type as "A", name: found.alias }],
  });
  const more = await askUpstream(question, context.upstream, "udp", context.clock).then(
    (bytes) => decode(bytes).answers ?? [],
    (): Answer[] => [],
  );
  return { ...found, answers: [...found.answers, ...more] };
}

function fitted(
  query: Packet,
  { code, answers, additionals }: Resolution,
  protocol: "udp" | "tcp",
  zone: string,
): Buffer {
  const option = query.additionals?.find((one) => one.type === "OPT") as { udpPayloadSize?: number } | undefined;
  const opt = option
    ? [{ type: "OPT", name: ".", udpPayloadSize: MAX_UDP_SIZE, flags: 0, options: [] } as unknown as Answer]
    : [];
  const flags = AUTHORITATIVE | RECURSION_AVAILABLE | ((query.flags ?? 0) & RECURSION_DESIRED) | RCODE[code];
  const base = { type: "response" as const, id: query.id ?? 0, questions: query.questions ?? [] };
  const authorities = answers.length === 0 ? [soa(zone)] : [];
  const whole = encode({ ...base, flags, answers: [...answers], authorities, additionals: [...additionals, ...opt] });
  const limit =
    protocol === "tcp" ? 65_535 : Math.min(Math.max(option?.udpPayloadSize ?? PLAIN_SIZE, PLAIN_SIZE), MAX_UDP_SIZE);
  if (whole.length <= limit) return whole;
  const bare = encode({ ...base, flags, answers: [...answers], authorities, additionals: opt });
  if (bare.length <= limit) return bare;
  return encode({ ...base, flags: flags | TRUNCATED, answers: [], additionals: opt });
}
