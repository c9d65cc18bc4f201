import { messageOf } from "#base";
import type { PodEvent } from "../ports.ts";
import { ClaimError } from "./persistent-volume.ts";
import { MountStepError } from "./sources.ts";

/** A volume that could not be set up. */
export interface VolumeFault {
  readonly volume: string;
  readonly error: unknown;
}

/**
 * The events that tell of volumes which could not be set up, in the words of the kubelet: one for each, and one for the
 * whole pod when a claim is at fault or it takes too long (`late`).
 */
export function mountEvents(faults: readonly VolumeFault[], late: boolean): PodEvent[] {
  const event = (message: string): PodEvent => ({ type: "Warning", reason: "FailedMount", message });
  const claims = faults.filter(({ error }) => error instanceof ClaimError);
  const events = faults
    .filter(({ error }) => !(error instanceof ClaimError))
    .map(({ volume, error }) => {
      const at = error instanceof MountStepError ? error : { step: "MountVolume.SetUp failed", volume };
      return event(`${at.step} for volume "${at.volume}" : ${messageOf(error)}`);
    });
  if (claims.length === 0 && !late) return events;
  const names = (list: readonly VolumeFault[]) =>
    list
      .map(({ volume }) => volume)
      .sort()
      .join(" ");
  const why = claims.map(({ error }) => messageOf(error)).join("; ") || "context deadline exceeded";
  const whole =
    `Unable to attach or mount volumes: unmounted volumes=[${names(faults)}], unattached volumes=[], ` +
    `failed to process volumes=[${names(claims)}]: ${why}`;
  return [...events, event(whole)];
}
