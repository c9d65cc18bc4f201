import type { ApiRequest, ApiResponse } from "#kinds";

/** Checks by name; a text is what is wrong. */
export interface Health {
  readonly ready?: Readonly<Record<string, () => string | undefined>>;
  readonly live?: Readonly<Record<string, () => string | undefined>>;
}

/** `/healthz`, `/livez`, `/readyz`, each with `?verbose`, `?exclude=` and a path for one check. */
export function healthPaths({ ready = {}, live = {} }: Health): (request: ApiRequest) => ApiResponse | undefined {
  const ping = { ping: () => undefined };
  const all = { healthz: { ...ping, ...live }, livez: { ...ping, ...live }, readyz: { ...ping, ...live, ...ready } };
  return ({ path, query }) => {
    const [, root = "", one] = path.split("/");
    if (!(root in all)) return undefined;
    const checks: Readonly<Record<string, () => string | undefined>> = all[root as keyof typeof all];
    if (one !== undefined) {
      const check = checks[one];
      if (!check) return undefined;
      const wrong = check();
      return text(wrong ? 500 : 200, wrong ? `internal server error: ${wrong}` : "ok");
    }
    const excluded = new Set(query.getAll("exclude"));
    const results = Object.entries(checks).map(([name, check]) => ({
      name,
      wrong: excluded.has(name) ? undefined : check(),
    }));
    const failed = results.filter(({ wrong }) => wrong);
    const lines = results.map(({ name, wrong }) =>
      wrong ? `[-]${name} failed: reason withheld` : `[+]${name} ${excluded.has(name) ? "excluded: ok" : "ok"}`,
    );
    if (failed.length > 0) return text(500, `${lines.join("\n")}\n${root} check failed\n`);
    return text(200, query.has("verbose") ? `${lines.join("\n")}\n${root} check passed\n` : "ok");
  };
}

function text(code: number, body: string): ApiResponse {
  return {
    code,
    headers: { "x-content-type-options": "nosniff" },
    body: { kind: "bytes", bytes: Buffer.from(body), contentType: "text/plain; charset=utf-8" },
  };
}
