import { spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock, Logger, Random } from "#base";
import { EngineError, isEngineError } from "../../errors.ts";
import type { ImageStatus, PullOptions } from "../../port.ts";
import { isImage, parseDescriptors, parseObject, sha256 } from "./documents.ts";
import { choosePlatform, type Platform } from "./platform.ts";
import { formatReference, type Reference } from "./reference.ts";

export interface PullerOptions {
  /** `http://127.0.0.1:5000` */
  readonly mirror?: string;
  readonly runDir: string;
  readonly platform: Platform;
  /** Makes an empty directory on the disk of the store. */
  scratch(): string;
  discard(path: string): void;
  /** Variables such as HTTPS_PROXY, for the program that fetches. */
  readonly proxies: Readonly<Record<string, string>>;
  /** Takes the image in this directory (skopeo's `dir:` form) into the store under this name. */
  load(
    path: string,
    reference: Reference,
    manifestDigests: readonly string[],
    signal: AbortSignal,
  ): Promise<ImageStatus>;
}

export interface Puller {
  /** The same reference asked for twice at once is fetched once, if the credentials are the same. */
  pull(reference: Reference, options?: PullOptions): Promise<ImageStatus>;
  /** Ends all pulls. */
  close(): Promise<void>;
}

type Auth = NonNullable<PullOptions["auths"]>[number];

/** Fetches images by the program skopeo, which knows registries, their tokens and their certificates. */
export function createPuller(deps: { clock: Clock; random: Random; logger: Logger }, options: PullerOptions): Puller {
  const running = new Map<string, SharedPull>();
  /** Those that were given up, too: they still have to clean up. */
  const unfinished = new Set<Promise<unknown>>();
  const closing = new AbortController();

  async function fetch(reference: Reference, auths: readonly Auth[], signal: AbortSignal): Promise<ImageStatus> {
    const failures: EngineError[] = [];
    for (const source of sourcesOf(reference, options.mirror)) {
      // The mirror is asked without the credentials of the registry that it stands for.
      for (const auth of source.isMirror ? [undefined] : [...auths, undefined]) {
        try {
          return await fetchFrom(source, auth, reference, signal);
        } catch (error) {
          if (!isEngineError(error, "pull-denied", "pull-not-found", "pull-failed")) throw error;
          failures.push(error);
          if (error.code !== "pull-denied") break;
        }
      }
    }
    throw failures.at(-1)!;
  }

  /** Asks for the manifest, chooses the platform, then fetches exactly that by its digest. */
  async function fetchFrom(source: Source, auth: Auth | undefined, reference: Reference, signal: AbortSignal) {
    const secrets = join(options.runDir, `pull-${deps.random.suffix(12)}`);
    const layout = options.scratch();
    mkdirSync(secrets, { recursive: true, mode: 0o700 });
    try {
      const authFile = join(secrets, "auth.json");
      writeFileSync(authFile, JSON.stringify(authDocument(source.host, auth)), { mode: 0o600 });
      const skopeo = async (verb: string, before: readonly string[], side: "" | "src-") => {
        const access = [
          `--${side}authfile=${authFile}`,
          // Only this form is taken from nothing but the command line; it lives for minutes and is of use for pulling only.
          ...(auth?.registryToken ? [`--${side}registry-token=${auth.registryToken}`] : []),
          ...(source.isPlain ? [`--${side}tls-verify=false`] : []),
        ];
        const result = await runSkopeo([verb, ...access, ...before], secrets, options.proxies, signal);
        signal.throwIfAborted();
        if (result.code !== 0) throw explain(result.stderr, reference);
        return result.stdout;
      };
      const top = await skopeo("inspect", ["--raw", `docker://${source.image}`], "");
      const digests = [sha256(top)];
      const chosen = chooseManifest(top, options.platform, formatReference(reference));
      if (chosen !== undefined) digests.push(chosen);
      const exact = `${source.repository}@${chosen ?? digests[0]}`;
      await skopeo("copy", ["--quiet", "--preserve-digests", `docker://${exact}`, `dir:${layout}`], "src-");
      return await options.load(layout, reference, digests, signal);
    } finally {
      rmSync(secrets, { recursive: true, force: true });
      options.discard(layout);
    }
  }

  return {
    async pull(reference, { auths = [], signal } = {}) {
      signal?.throwIfAborted();
      const key = JSON.stringify([formatReference(reference), auths]);
      let shared = running.get(key);
      if (!shared || shared.isOver) {
        shared = sharePull((own) => fetch(reference, auths, AbortSignal.any([own, closing.signal])));
        running.set(key, shared);
        const mine = shared;
        unfinished.add(mine.result);
        const forget = () => {
          unfinished.delete(mine.result);
          if (running.get(key) === mine) running.delete(key);
        };
        mine.result.then(forget, forget);
      }
      return shared.join(signal);
    },
    async close() {
      closing.abort(new EngineError("pull-failed", "the engine is closing"));
      await Promise.allSettled(unfinished);
    },
  };
}

interface SharedPull {
  readonly result: Promise<ImageStatus>;
  readonly isOver: boolean;
  /** Waits for it; the work ends when all who wait have given up. */
  join(signal?: AbortSignal): Promise<ImageStatus>;
}

function sharePull(work: (signal: AbortSignal) => Promise<ImageStatus>): SharedPull {
  const own = new AbortController();
  const result = work(own.signal);
  result.catch(() => {});
  let waiting = 0;
  return {
    result,
    get isOver() {
      return own.signal.aborted;
    },
    async join(signal) {
      waiting += 1;
      const gaveUp = Promise.withResolvers<never>();
      const give = () => gaveUp.reject(signal?.reason);
      signal?.addEventListener("abort", give, { once: true });
      try {
        return await Promise.race([result, gaveUp.promise]);
      } finally {
        signal?.removeEventListener("abort", give);
        waiting -= 1;
        if (waiting === 0) own.abort(signal?.reason);
      }
    },
  };
}

interface Source {
  /** `127.0.0.1:5000/library/busybox` */
  readonly repository: string;
  /** The same with tag or digest. */
  readonly image: string;
  readonly host: string;
  /** Plain HTTP or a certificate nobody signed is fine: loopback, or a mirror that the user named so. */
  readonly isPlain: boolean;
  readonly isMirror: boolean;
}

/** The mirror first, then the registry itself. A mirror holds docker.io's images under their path, others below their host. */
function sourcesOf(reference: Reference, mirror: string | undefined): readonly Source[] {
  const suffix = reference.digest ? `@${reference.digest}` : `:${reference.tag}`;
  const source = (repository: string, host: string, isPlain: boolean, isMirror: boolean): Source => ({
    repository,
    image: `${repository}${suffix}`,
    host,
    isPlain: isPlain || isLoopback(host),
    isMirror,
  });
  const own = source(reference.name, reference.domain, false, false);
  if (!mirror) return [own];
  const url = new URL(/^https?:\/\//.test(mirror) ? mirror : `https://${mirror}`);
  const isPlain = url.protocol === "http:";
  if (url.host === reference.domain) return [source(reference.name, url.host, isPlain, false)];
  const path = reference.domain === "docker.io" ? reference.path : reference.name;
  return [source(`${url.host}${url.pathname.replace(/\/+$/, "")}/${path}`, url.host, isPlain, true), own];
}

/** The digest that an index names for the platform; undefined for a manifest of one image. */
function chooseManifest(top: Buffer, platform: Platform, what: string): string | undefined {
  const manifest = parseObject(top, `the manifest of ${what}`);
  if (!Array.isArray(manifest.manifests)) return undefined;
  const entries = parseDescriptors(manifest.manifests, `the index of ${what}`).filter(isImage);
  return choosePlatform(entries, platform, what).digest;
}

/** A registry's answer in the words of the kubelet's events, and short. */
function explain(stderr: string, reference: Reference): EngineError {
  const shown = formatReference(reference);
  const said = /msg="((?:[^"\\]|\\.)*)"\s*$/.exec(stderr.trim())?.[1]?.replace(/\\(.)/g, "$1") ?? stderr.trim();
  const cause = new Error(said);
  if (/manifest unknown|name unknown|not found|404/i.test(said) && !/no such host/.test(said)) {
    return new EngineError("pull-not-found", `failed to resolve reference "${shown}": ${shown}: not found`, { cause });
  }
  if (/unauthorized|authentication required|denied|403|401/i.test(said)) {
    const why = "pull access denied, repository does not exist or may require authorization";
    return new EngineError("pull-denied", `failed to resolve reference "${shown}": ${why}`, { cause });
  }
  const short = said
    .replace(/^.*?(pinging container registry|reading manifest|reading blob|copying|Error)/s, "$1")
    .slice(0, 400);
  return new EngineError("pull-failed", `failed to pull image "${shown}": ${short || "skopeo failed without a word"}`, {
    cause,
  });
}

function isLoopback(host: string): boolean {
  const name = host.replace(/:\d+$/, "");
  return name === "localhost" || name === "[::1]" || /^127(\.\d{1,3}){3}$/.test(name);
}

function authDocument(host: string, auth: Auth | undefined): unknown {
  const key = host === "docker.io" ? "https://index.docker.io/v1/" : host;
  if (auth?.identityToken) return { auths: { [key]: { auth: base64("<token>:"), identitytoken: auth.identityToken } } };
  if (auth?.username === undefined) return { auths: {} };
  return { auths: { [key]: { auth: base64(`${auth.username}:${auth.password ?? ""}`) } } };
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

function runSkopeo(
  args: readonly string[],
  home: string,
  proxies: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<{ code: number; stdout: Buffer; stderr: string }> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const child = spawn("skopeo", args, {
      stdio: ["ignore", "pipe", "pipe"],
      // Nothing of the user's own set-up decides what a node pulls.
      env: {
        PATH: "/usr/local/bin:/usr/bin:/bin",
        HOME: home,
        XDG_RUNTIME_DIR: home,
        TMPDIR: home,
        LC_ALL: "C",
        ...proxies,
      },
      signal,
      killSignal: "SIGKILL",
    });
    const stdout: Buffer[] = [];
    let size = 0;
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MAX_MANIFEST) stdout.push(chunk);
    });
    child.stderr.on("data", (chunk: Buffer) => {
      if (stderr.length < MAX_MANIFEST) stderr += chunk.toString();
    });
    let failure: Error | undefined;
    child.on("error", (error) => {
      failure = error;
      if (child.pid !== undefined) return; // aborted: it closes as well
      reject(new EngineError("pull-failed", `cannot run skopeo: ${error.message}`, { hint: "Install skopeo." }));
    });
    child.on("close", (code) => {
      if (failure) reject(failure);
      else resolve({ code: code ?? 128, stdout: Buffer.concat(stdout), stderr });
    });
  });
}

const MAX_MANIFEST = 4 << 20;
