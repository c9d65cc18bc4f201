import { failure, type StatusError } from "#kinds";

export interface InFlightLimits {
  /** Requests that change something, at a time. Default 200, as kube-apiserver's `--max-mutating-requests-inflight`. */
  readonly mutating: number;
  /** Reads, at a time. Default 400. */
  readonly readonly: number;
}

export const DEFAULT_LIMITS: InFlightLimits = { mutating: 200, readonly: 400 };

/**
 * Counts running requests, watches and sessions apart. One user gets at most half of the places, so that a client that
 * floods the server leaves room for the others.
 */
export interface InFlight {
  /** Takes a place; call the result when the request has ended. @throws StatusError 429 */
  enter(mutating: boolean, username: string): () => void;
}

const tooMany = (): StatusError =>
  failure(429, "TooManyRequests", "Too many requests, please try again later.", { retryAfterSeconds: 1 });

export function createInFlight(limits: InFlightLimits): InFlight {
  const kinds = { mutating: counters(limits.mutating), readonly: counters(limits.readonly) };
  return { enter: (mutating, username) => (mutating ? kinds.mutating : kinds.readonly)(username) };
}

function counters(limit: number): (username: string) => () => void {
  const share = Math.max(1, Math.ceil(limit / 2));
  const byUser = new Map<string, number>();
  let total = 0;
  return (username) => {
    const mine = byUser.get(username) ?? 0;
    if (total >= limit || mine >= share) throw tooMany();
    total++;
    byUser.set(username, mine + 1);
    return () => {
      total--;
      const left = (byUser.get(username) ?? 1) - 1;
      if (left > 0) byUser.set(username, left);
      else byUser.delete(username);
    };
  };
}
