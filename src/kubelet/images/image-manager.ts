import { type Clock, messageOf } from "#base";
import { type ImageStatus, isEngineError, type Engine } from "#engine";
import { goDuration } from "../duration.ts";
import { createRestartBackoff } from "../pods/restart-backoff.ts";
import type { PodEvent } from "../ports.ts";
import type { Auth } from "./credentials.ts";

/** The image cannot be had now: the container's waiting reason and message. */
export class ImageError extends Error {
  /** `ErrImagePull`, `ImagePullBackOff`, `ErrImageNeverPull`, `InvalidImageName`, `ImageInspectError` */
  readonly reason: string;
  /** When another pull makes sense, milliseconds; undefined: not known. */
  readonly retryAt: number | undefined;
  constructor(reason: string, message: string, retryAt?: number) {
    super(message);
    this.name = "ImageError";
    this.reason = reason;
    this.retryAt = retryAt;
  }
}

export interface ImageRequest {
  readonly uid: string;
  readonly image: string;
  /** `Always`, `IfNotPresent`, `Never` */
  readonly policy: string;
  auths(): Promise<readonly Auth[]>;
  event(event: PodEvent): void;
  readonly signal: AbortSignal;
}

export interface ImageManager {
  /** @throws {ImageError} */
  ensure(request: ImageRequest): Promise<ImageStatus>;
  forget(uid: string): void;
}

/**
 * Pull policies and the back-off of failed pulls.
 *
 * Source: https://kubernetes.io/docs/concepts/containers/images/#updating-images
 */
export function createImageManager(deps: { engine: Engine; clock: Clock }): ImageManager {
  const { engine, clock } = deps;
  const backoff = createRestartBackoff(clock);
  const failures = new Map<string, { at: number; text: string }>();

  function find({ image, event }: ImageRequest): ImageStatus | undefined {
    try {
      return engine.images.get(withTag(image));
    } catch (error) {
      if (!isEngineError(error, "invalid-reference")) throw error;
      const message = `Failed to apply default image tag "${image}": ${parseFailure(image, error)}`;
      event({ type: "Warning", reason: "InspectFailed", message });
      throw new ImageError("InvalidImageName", message);
    }
  }

  async function pull(request: ImageRequest): Promise<ImageStatus> {
    const { image, event } = request;
    const key = `${request.uid}_${image}`;
    const failed = failures.get(key);
    const wait = failed ? backoff.until(key, failed.at) : undefined;
    if (failed && wait) {
      const message = `Back-off pulling image "${image}"`;
      event({ type: "Normal", reason: "BackOff", message });
      throw new ImageError("ImagePullBackOff", `${message}: ${failed.text}`, wait.at);
    }
    event({ type: "Normal", reason: "Pulling", message: `Pulling image "${image}"` });
    const began = clock.monotonic();
    try {
      const pulled = await engine.images.pull(withTag(image), { auths: await request.auths(), signal: request.signal });
      const took = goDuration(Math.max(1, Math.round(clock.monotonic() - began)));
      const message = `Successfully pulled image "${image}" in ${took} (${took} including waiting). Image size: ${pulled.size} bytes.`;
      event({ type: "Normal", reason: "Pulled", message });
      failures.delete(key);
      return pulled;
    } catch (error) {
      request.signal.throwIfAborted();
      const text = messageOf(error);
      event({ type: "Warning", reason: "Failed", message: `Failed to pull image "${image}": ${text}` });
      const at = clock.now();
      backoff.next(key, at);
      failures.set(key, { at, text: `ErrImagePull: ${text}` });
      throw new ImageError("ErrImagePull", text, backoff.until(key, at)?.at);
    }
  }

  return {
    async ensure(request) {
      const { image, policy, event } = request;
      const present = find(request);
      if (policy === "Always") return pull(request);
      if (present) {
        const message = `Container image "${image}" already present on machine and can be accessed by the pod`;
        event({ type: "Normal", reason: "Pulled", message });
        return present;
      }
      if (policy === "Never") {
        const message = `Container image "${image}" is not present with pull policy of Never`;
        event({ type: "Warning", reason: "ErrImageNeverPull", message });
        throw new ImageError("ErrImageNeverPull", message);
      }
      return pull(request);
    },
    forget(uid) {
      backoff.forget(`${uid}_`);
      for (const key of failures.keys()) if (key.startsWith(`${uid}_`)) failures.delete(key);
    },
  };
}

/** The default tag is made visible only where neither tag nor digest is given. */
const withTag = (image: string): string => (/[:@][^/]*$/.test(image) ? image : `${image}:latest`);

function parseFailure(image: string, error: Error): string {
  const start = `couldn't parse image name "${image}": `;
  if (error.message.startsWith(start)) return error.message;
  const upper = /^[^:@]*[A-Z]/.test(image.replace(/^[^/]*[.:][^/]*\//, ""));
  const name = image.replace(/:[^/]*$/, "");
  const repository = name.includes("/") ? name : `library/${name}`;
  return `${start}invalid reference format${upper ? `: repository name (${repository.split(":")[0]}) must be lowercase` : ""}`;
}
