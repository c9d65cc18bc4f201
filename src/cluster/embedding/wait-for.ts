import { type Clock, CodedError, createJsonPath, type DeepReadonly, printValue } from "#base";
import type { Client, Discovery, PodStreams } from "#client";
import { type Cause, diagnose, type Diagnosis, gatherEvidence, readinessOf, renderDiagnosis } from "#diagnosis";
import { type ApiObject, isStatus } from "#kinds";
import { type Located, locate, type ObjectRef } from "./reference.ts";

/** What is waited for. None given: that the object is ready, as `kubectl rollout status` and `kubectl wait` judge it. */
export interface WaitOptions {
  /** Of references that name none. Default `default`. */
  readonly namespace?: string;
  /** A condition of the status: `Available`, or `Ready=False`. */
  readonly condition?: string;
  /** A JSONPath and the value that it is to give: `{.status.phase}=Running`; without `=` any value will do. */
  readonly jsonPath?: string;
  /** That the object is gone. */
  readonly deleted?: boolean;
  /** Milliseconds on the cluster's clock. Default 60,000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /**
   * Ends the wait with the cause once there is one that waiting can't mend (a bad image name), or one that might mend itself (a
   * failing probe, no room on the nodes) has stood for `patienceMs`. Default: true, unless what is waited for is a failure.
   */
  readonly failFast?: boolean;
  /** Default 10,000. */
  readonly patienceMs?: number;
}

/** What was waited for did not come. `message` names the cause in its first line, what shows it in the others. */
export class WaitError extends CodedError {
  override name = "WaitError";
  /** `undefined` when the object does not exist. */
  readonly diagnosis: Diagnosis | undefined;
  constructor(code: "wait-timeout" | "wait-hopeless", message: string, diagnosis: Diagnosis | undefined) {
    super(code, message);
    this.diagnosis = diagnosis;
  }
}

export interface WaitDeps {
  readonly client: Client;
  readonly discovery: Discovery;
  readonly streams: PodStreams;
  readonly clock: Clock;
  /** Milliseconds between looks. */
  readonly interval: number;
}

/** @throws WaitError, StatusError */
export async function waitFor(
  deps: WaitDeps,
  ref: ObjectRef,
  options: WaitOptions = {},
): Promise<DeepReadonly<ApiObject> | undefined> {
  const { clock } = deps;
  const at = await locate(deps.discovery, ref, options.namespace ?? "default");
  const goal = goalOf(options);
  const failFast = options.failFast ?? goal.failFast;
  const patience = createPatience(clock, options.patienceMs ?? 10_000);
  const end = clock.monotonic() + (options.timeoutMs ?? 60_000);
  const signal = options.signal ? { signal: options.signal } : {};
  for (;;) {
    options.signal?.throwIfAborted();
    const object = await read(deps, at, options.signal);
    if (goal.reached(object)) return object;
    const late = clock.monotonic() >= end;
    if (late || failFast) {
      const diagnosis = object && diagnose(await gatherEvidence(deps, withKind(object, at), signal));
      const [cause] = diagnosis?.causes ?? [];
      // the cause is that of a moment ago: what was waited for may have come meanwhile
      if (late || (cause && patience.isOver(cause))) {
        const now = await read(deps, at, options.signal);
        if (goal.reached(now)) return now;
        throw waitError(late ? "wait-timeout" : "wait-hopeless", at, goal.text, diagnosis, options);
      }
    }
    await clock.sleep(Math.max(1, Math.min(deps.interval, end - clock.monotonic())), signal);
  }
}

/** Items of a list and objects of other versions name their kind too. */
export function withKind(object: DeepReadonly<ApiObject>, { resource }: Located): DeepReadonly<ApiObject> {
  return object.kind ? object : { ...object, kind: resource.kind };
}

async function read({ client }: WaitDeps, { resource, name, namespace }: Located, signal: AbortSignal | undefined) {
  try {
    return await client.get(resource, name, { namespace, ...(signal ? { signal } : {}) });
  } catch (error) {
    if (isStatus(error, "NotFound")) return undefined;
    throw error;
  }
}

interface Goal {
  readonly text: string;
  /** What is waited for is good, so that a fault is a reason to end. */
  readonly failFast: boolean;
  reached(object: DeepReadonly<ApiObject> | undefined): boolean;
}

function goalOf(options: WaitOptions): Goal {
  if (options.deleted) return { text: "to be gone", failFast: true, reached: (object) => object === undefined };
  if (options.condition !== undefined) return conditionGoal(options.condition);
  if (options.jsonPath !== undefined) return jsonPathGoal(options.jsonPath);
  return {
    text: "to be ready",
    failFast: true,
    reached: (object) => object !== undefined && readinessOf(object as ApiObject).ready,
  };
}

const BAD = new Set(["Failed", "FailureTarget", "ReplicaFailure", "DisruptionTarget", "SuccessCriteriaMet"]);

function conditionGoal(text: string): Goal {
  const [type = "", wanted = "True"] = text.split("=", 2);
  return {
    text: `to have the condition ${type}=${wanted}`,
    failFast: wanted.toLowerCase() === "true" && !BAD.has(type),
    reached(object) {
      const { conditions = [], observedGeneration } = (object?.status ?? {}) as {
        conditions?: readonly { type: string; status: string; observedGeneration?: number }[];
        observedGeneration?: number;
      };
      const condition = conditions.find((one) => one.type.toLowerCase() === type.toLowerCase());
      const seen = condition?.observedGeneration ?? observedGeneration;
      // what is said of an earlier generation is not said of this one
      if (seen !== undefined && seen < (object?.metadata.generation ?? 0)) return false;
      return condition?.status.toLowerCase() === wanted.toLowerCase();
    },
  };
}

function jsonPathGoal(text: string): Goal {
  const match = /^(.*\}|[^=]*?)(?:=(.*))?$/s.exec(text);
  const path = createJsonPath(match?.[1] ?? text, { relaxed: true });
  const wanted = match?.[2];
  return {
    text: `for ${text}`,
    failFast: false,
    reached(object) {
      const values = object === undefined ? [] : path.find(object).flat();
      return wanted === undefined ? values.length > 0 : values.some((value) => printValue(value) === wanted);
    },
  };
}

/** Tells when a cause has stood for long enough. */
function createPatience(clock: Clock, ms: number): { isOver(cause: Cause): boolean } {
  let standing = "";
  let since = 0;
  return {
    isOver(cause) {
      if (cause.mends === "never") return true;
      if (cause.code !== standing) {
        standing = cause.code;
        since = clock.monotonic();
      }
      return clock.monotonic() - since >= ms;
    },
  };
}

function waitError(
  code: "wait-timeout" | "wait-hopeless",
  { resource, name, namespace }: Located,
  goal: string,
  diagnosis: Diagnosis | undefined,
  options: WaitOptions,
): WaitError {
  const what = `${resource.singular}/${name}${namespace ? ` in namespace ${namespace}` : ""}`;
  const opening =
    code === "wait-timeout"
      ? `waited ${(options.timeoutMs ?? 60_000) / 1000} s in vain for ${what} ${goal}`
      : `${what} can't come ${goal}`;
  const why = diagnosis ? renderDiagnosis(diagnosis).trimEnd() : "It does not exist.";
  return new WaitError(code, `${opening}: ${why.charAt(0).toLowerCase()}${why.slice(1)}`, diagnosis);
}
