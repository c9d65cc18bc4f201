/** Attributes that hold a URL, by element: their links must lead through the proxy again. */
const URL_ATTRIBUTES: Readonly<Record<string, readonly string[]>> = {
  a: ["href"],
  applet: ["codebase"],
  area: ["href"],
  audio: ["src"],
  base: ["href"],
  blockquote: ["cite"],
  body: ["background"],
  button: ["formaction"],
  command: ["icon"],
  del: ["cite"],
  embed: ["src"],
  form: ["action"],
  frame: ["longdesc", "src"],
  head: ["profile"],
  html: ["manifest"],
  iframe: ["longdesc", "src"],
  img: ["longdesc", "src", "usemap"],
  input: ["src", "usemap", "formaction"],
  ins: ["cite"],
  link: ["href"],
  object: ["classid", "codebase", "data", "usemap"],
  q: ["cite"],
  script: ["src"],
  source: ["src"],
  video: ["poster", "src"],
};

/** What a link of a proxied answer is read against. */
export interface ProxyPlace {
  /** Path below which the answer's site is seen: `/api/v1/namespaces/default/pods/web/proxy`. */
  readonly prefix: string;
  /** `host:port` of the site itself. */
  readonly targetHost: string;
  /** `Host` of the request to the API server. */
  readonly requestHost: string;
}

/** A link as it leads through the proxy; links to other sites and relative ones stay as they are. Pure. */
export function rewriteLink(link: string, { prefix, targetHost, requestHost }: ProxyPlace): string {
  const match = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(.*)$/i.exec(link);
  const [, scheme = "", host = "", path = "", rest = ""] = match ?? [];
  if (host !== "" && host !== targetHost && host !== requestHost) return link;
  if (!path.startsWith("/") || path.startsWith(prefix)) return link;
  const start = scheme !== "" || host !== "" ? `https://${requestHost}` : "";
  return `${start}${prefix}${path}${rest}`;
}

/** Every link of a page, as `rewriteLink` gives it; all other text stays as it is, byte by byte. Pure. */
export function rewriteHtml(page: string, place: ProxyPlace): string {
  return page.replace(
    /<!--[\s\S]*?-->|<([a-z][a-z0-9]*)((?:\s+|"[^"]*"|'[^']*'|[^'">])*)>/gi,
    (tag, name, attributes) => {
      const wanted = URL_ATTRIBUTES[String(name).toLowerCase()];
      if (!wanted || !attributes) return tag;
      const changed = String(attributes).replace(
        /(\s)([a-z-]+)(\s*=\s*)("[^"]*"|'[^']*'|[^\s"'>]+)/gi,
        (whole, space, attribute, equals, value) => {
          if (!wanted.includes(attribute.toLowerCase())) return whole;
          const quote = /^["']/.test(value) ? value[0] : "";
          const link = quote ? value.slice(1, -1) : value;
          return `${space}${attribute}${equals}${quote}${rewriteLink(link, place)}${quote}`;
        },
      );
      return tag.replace(attributes, () => changed);
    },
  );
}
