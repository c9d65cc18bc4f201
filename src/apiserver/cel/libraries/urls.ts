import type { Environment } from "@marcbachmann/cel-js";
import { comparableType, functions, TextValue } from "./register.ts";

const TYPE = "kubernetes.URL";

/** An absolute URL, or an absolute path. */
export class UrlValue extends TextValue {
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;
  constructor(text: string) {
    super(text);
    const match = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?/.exec(text);
    this.scheme = (match?.[1] ?? "").toLowerCase();
    this.host = (match?.[2] ?? "").replace(/^.*@/, "");
    this.path = match?.[3] ?? "";
    this.query = match?.[4] ?? "";
  }
}

/** https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-url-library */
export function registerUrls(env: Environment): void {
  comparableType(env, TYPE, UrlValue, (a, b) => a.text === b.text);
  functions(env, {
    [`url(string): ${TYPE}`]: (text: string) => {
      const error = uriError(text);
      if (error) throw new Error(`URL parse error during conversion from string: ${error}`);
      return new UrlValue(text);
    },
    "isURL(string): bool": (text: string) => uriError(text) === undefined,
    [`${TYPE}.getScheme(): string`]: (url: UrlValue) => url.scheme,
    [`${TYPE}.getHost(): string`]: (url: UrlValue) => url.host,
    [`${TYPE}.getHostname(): string`]: (url: UrlValue) => url.host.replace(/:\d*$/, "").replace(/^\[|\]$/g, ""),
    [`${TYPE}.getPort(): string`]: (url: UrlValue) => /:(\d*)$/.exec(url.host)?.[1] ?? "",
    [`${TYPE}.getEscapedPath(): string`]: (url: UrlValue) => escapePath(url.path),
    [`${TYPE}.getQuery(): map<string, list<string>>`]: (url: UrlValue) => {
      const query = new Map<string, string[]>();
      for (const [key, value] of new URLSearchParams(url.query)) query.set(key, [...(query.get(key) ?? []), value]);
      return query;
    },
  });
}

/** What Go's ParseRequestURI says of a text; undefined for an absolute URL or path. */
export function uriError(text: string): string | undefined {
  const at = `parse ${JSON.stringify(text)}`;
  if (text === "") return `${at}: empty url`;
  if ([...text].some((c) => c.charCodeAt(0) < 0x20 || c.charCodeAt(0) === 0x7f))
    return `${at}: net/url: invalid control character in URL`;
  if (text.startsWith(":")) return `${at}: missing protocol scheme`;
  const scheme = /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(text)?.[0];
  if (!scheme && !text.startsWith("/")) return `${at}: invalid URI for request`;
  const authority = /^(?:[^/?#]*:)?\/\/([^/?#]*)/.exec(text)?.[1];
  const host = authority?.replace(/^.*@/, "");
  if (host && /[ <>"]/.test(host))
    return `${at}: invalid character ${JSON.stringify(/[ <>"]/.exec(host)![0])} in host name`;
  const port = host && /:([^\]:]*)$/.exec(host)?.[1];
  if (port && !/^\d*$/.test(port)) return `${at}: invalid port ":${port}" after host`;
  const escaping = /%(?![0-9A-Fa-f]{2})(.{0,2})/.exec(text);
  if (escaping) return `${at}: invalid URL escape ${JSON.stringify(`%${escaping[1]}`)}`;
  return undefined;
}

function escapePath(path: string): string {
  return path.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:@/%]/gu, (c) => encodeURIComponent(c));
}
