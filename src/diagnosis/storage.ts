import {
  aboutOf,
  type Cause,
  type Evidence,
  eventLine,
  lastEvent,
  oneLine,
  type ReadonlyObject,
  relatedOf,
} from "./evidence.ts";

interface Claim {
  readonly spec?: {
    readonly storageClassName?: string;
    readonly volumeName?: string;
    readonly resources?: { readonly requests?: { readonly storage?: string } };
    readonly accessModes?: readonly string[];
  };
  readonly status?: { readonly phase?: string };
}

/** Why a PersistentVolumeClaim is not bound. */
export function claimCause(evidence: Evidence, object: ReadonlyObject): Cause | undefined {
  const { spec = {}, status = {} } = object as unknown as Claim;
  const about = aboutOf(object);
  if (status.phase === "Bound") return undefined;
  const who = `the PersistentVolumeClaim "${about.name}"`;
  const event = lastEvent(
    evidence,
    about,
    "ProvisioningFailed",
    "FailedBinding",
    "ExternalProvisioning",
    "WaitForFirstConsumer",
    "WaitForPodScheduled",
    "VolumeMismatch",
  );
  const shown = [`it is ${status.phase ?? "Pending"}`, ...(event ? [eventLine(event)] : [])];
  const not = (sentence: string, mends: Cause["mends"] = "maybe"): Cause => ({
    code: "claim-pending",
    sentence,
    evidence: shown,
    about,
    mends,
  });
  if (status.phase === "Lost")
    return not(`${who} lost its volume "${spec.volumeName}", which does not exist any more`, "never");
  const className = spec.storageClassName;
  const classes = relatedOf(evidence, "StorageClass");
  if (
    className &&
    classes.length + relatedOf(evidence, "Node").length > 0 &&
    !classes.some((one) => one.metadata.name === className)
  )
    return not(`${who} asks for the StorageClass "${className}", which does not exist`);
  if (event?.reason === "WaitForFirstConsumer" || event?.reason === "WaitForPodScheduled")
    return not(`${who} is bound only when a pod that uses it is scheduled, and there is none yet`);
  if (event?.reason === "ProvisioningFailed")
    return not(`no volume can be made for ${who}: ${oneLine(event.message ?? "")}`);
  if (event?.reason === "ExternalProvisioning")
    return not(`${who} waits for its provisioner to make a volume: ${oneLine(event.message ?? "")}`);
  const size = spec.resources?.requests?.storage;
  if (!className && event?.reason === "FailedBinding")
    return not(
      `no PersistentVolume fits ${who} (${size}, ${(spec.accessModes ?? []).join(", ")}), and it has no StorageClass that could make one`,
    );
  return event ? not(`${who} is not bound: ${oneLine(event.message ?? "")}`) : undefined;
}
