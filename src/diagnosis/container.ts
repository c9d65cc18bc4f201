import type { DeepReadonly } from "#base";
import type { Container, ContainerStateTerminated, ContainerStatus } from "#kinds";
import {
  aboutOf,
  type Cause,
  type CauseCode,
  type Evidence,
  eventLine,
  eventsOf,
  oneLine,
  type ReadonlyEvent,
  type ReadonlyPod,
} from "./evidence.ts";

type Status = DeepReadonly<ContainerStatus>;
type Terminated = DeepReadonly<ContainerStateTerminated>;

/** What is being looked at: one container of one pod. */
interface View {
  readonly evidence: Evidence;
  readonly pod: ReadonlyPod;
  readonly status: Status;
  readonly container: DeepReadonly<Container> | undefined;
  /** `container "app"` or `init container "migrate"` */
  readonly what: string;
  readonly init: boolean;
}

/** Why a container does not run, or is not ready; undefined when nothing is wrong with it. */
export function containerCause(evidence: Evidence, pod: ReadonlyPod, status: Status, init: boolean): Cause | undefined {
  const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const container = all.find((one) => one.name === status.name) as DeepReadonly<Container> | undefined;
  const what = `${init ? "init container" : "container"} "${status.name}"`;
  const view: View = { evidence, pod, status, container, what, init };
  const { waiting, running, terminated } = status.state ?? {};
  if (waiting) return waitingCause(view, waiting.reason ?? "", oneLine(waiting.message ?? ""));
  if (terminated) return endedCause(view, terminated, false);
  // It runs, but for how long: probes that kill, a restart that is only a moment ago.
  if (running) return killedByProbe(view) ?? notReady(view) ?? restarted(view);
  return undefined;
}

function waitingCause(view: View, reason: string, message: string): Cause | undefined {
  const { status, what, pod } = view;
  const shown = [`${what} is waiting: ${reason}${message ? `: ${message}` : ""}`];
  switch (reason) {
    case "ErrImagePull":
    case "ImagePullBackOff":
    case "InvalidImageName":
    case "ErrImageNeverPull":
    case "ImageInspectError":
    case "RegistryUnavailable":
      return imageCause(view, reason, message);
    case "CreateContainerConfigError":
      return configCause(view, message, shown);
    case "CreateContainerError":
    case "RunContainerError":
      if (isCommandFault(message)) return commandFault(view, message, shown);
      return cause(view, "container-config", `${what} of ${name(pod)} can't be created: ${message}`, shown);
    case "PostStartHookError":
      return cause(
        view,
        "hook-failed",
        `the postStart hook of ${what} of ${name(pod)} fails: ${hookReason(message)}`,
        shown,
      );
    case "CrashLoopBackOff": {
      const ended = status.lastState?.terminated;
      return killedByProbe(view) ?? killedByHook(view) ?? (ended ? endedCause(view, ended, true) : undefined);
    }
    default:
      return undefined;
  }
}

/** `Exec lifecycle hook ([false]) for … failed - error: command 'false' exited with 1: , message: ""` */
const hookReason = (message: string) => /failed - error: (.*?):? ?, message:/.exec(message)?.[1] ?? message;

/** `kind "x" not found`, `couldn't find key k in ConfigMap ns/x`, `references non-existent … key` */
const MISSING = [
  /\b(configmap|secret) "([^"]+)" not found/i,
  /couldn't find key (\S+) in (ConfigMap|Secret) (\S+)/,
  /references non-existent (config|secret) key: (\S+)/,
];

function configCause(view: View, message: string, shown: readonly string[]): Cause {
  const { what, pod } = view;
  const where = `${what} of ${name(pod)}`;
  const absent = MISSING[0]!.exec(message);
  if (absent) {
    const kind = absent[1]!.toLowerCase() === "secret" ? "Secret" : "ConfigMap";
    return cause(view, "config-missing", `${where} needs the ${kind} "${absent[2]}", which does not exist`, shown);
  }
  const key = MISSING[1]!.exec(message);
  if (key)
    return cause(
      view,
      "config-missing",
      `${where} needs the key "${key[1]}" of the ${key[2]} ${key[3]}, which it does not have`,
      shown,
    );
  const why = message.replace(/ \(pod: "[^"]*", container: [^)]*\)$/, "");
  return cause(view, "container-config", `${where} can't be configured: ${why}`, shown);
}

function imageCause(view: View, reason: string, waiting: string): Cause {
  const { status, container, pod, what } = view;
  const image = container?.image ?? status.image;
  // the back-off hides why; the event before it tells
  const failed = podEvents(view).findLast((event) => /^Failed to pull image/.test(event.message ?? ""));
  const why = oneLine(reason === "ImagePullBackOff" && failed?.message ? failed.message : waiting);
  const where = `${what} of ${name(pod)}`;
  const shown = [
    `${what} is waiting: ${reason}${waiting ? `: ${waiting}` : ""}`,
    ...(failed ? [eventLine(failed)] : []),
  ];
  if (reason === "InvalidImageName")
    return cause(view, "image", `the image name "${image}" of ${where} is not valid`, shown);
  if (reason === "ErrImageNeverPull")
    return cause(
      view,
      "image",
      `the image "${image}" of ${where} is not on the node, and imagePullPolicy Never forbids pulling it`,
      shown,
    );
  if (/unauthorized|denied|authentication required|forbidden|401|403/i.test(why))
    return cause(
      view,
      "image",
      `the registry does not let the image "${image}" of ${where} be pulled: access is denied, or there is no such repository`,
      shown,
    );
  if (/not found|manifest unknown|does not exist/i.test(why))
    return cause(view, "image", `the image "${image}" of ${where} does not exist`, shown);
  return cause(view, "image", `the image "${image}" of ${where} can't be pulled: ${reasonOfPull(why)}`, shown, "maybe");
}

/** What every layer on the way puts before the reason itself. */
const WRAPPING =
  /^(Back-off pulling image "[^"]*"|ErrImagePull|failed to pull( and unpack)? image "[^"]*"|failed to resolve reference "[^"]*"|(rpc error: code = \w+ desc = )|Error parsing image name "[^"]*"|Error response from daemon)(: ?|$)/i;

function reasonOfPull(why: string): string {
  let reason = why;
  for (let before = ""; before !== reason; ) {
    before = reason;
    reason = reason.replace(WRAPPING, "");
  }
  return reason || "the registry gave no reason";
}

const isCommandFault = (message: string) =>
  /executable file not found|no such file or directory|permission denied|exec format error|not a directory|is a directory/i.test(
    message,
  );

function commandFault(view: View, message: string, shown: readonly string[]): Cause {
  const { what, pod, container } = view;
  const program = /exec:? "([^"]+)"/.exec(message)?.[1] ?? container?.command?.[0] ?? container?.args?.[0] ?? "";
  const why = /executable file not found/.test(message)
    ? "is not in the image's $PATH"
    : /no such file/.test(message)
      ? "is not in the image"
      : /permission denied/.test(message)
        ? "is not executable"
        : /exec format error/.test(message)
          ? "is built for another kind of machine"
          : "can't be run";
  return cause(view, "invalid-command", `the command "${program}" of ${what} of ${name(pod)} ${why}`, shown);
}

/** @param looping it is being restarted again and again */
function endedCause(view: View, ended: Terminated, looping: boolean): Cause | undefined {
  const { evidence, pod, status, what, init, container } = view;
  const { exitCode, reason = "", message = "" } = ended;
  if (exitCode === 0 && !looping) return undefined;
  const lines = evidence.logs.get(`${pod.metadata.name}/${status.name}`) ?? [];
  const shown = [
    `${what} ended with exit code ${exitCode}${reason ? ` (${reason})` : ""}${message ? `: ${oneLine(message)}` : ""}`,
    ...(status.restartCount > 0 ? [`${what} was restarted ${times(status.restartCount)}`] : []),
    ...lines.map((line) => `log: ${line}`),
  ];
  const where = `${what} of ${name(pod)}`;
  if (reason === "OOMKilled") {
    const limit = container?.resources?.limits?.memory;
    const than = limit === undefined ? "the node has" : `its limit of ${limit}`;
    return cause(view, "out-of-memory", `${where} needs more memory than ${than}: it is killed`, shown);
  }
  if (reason === "StartError" || reason === "ContainerCannotRun" || isStartFailure(exitCode, message))
    return isCommandFault(message)
      ? commandFault(view, message, shown)
      : cause(view, "container-config", `${where} can't be started: ${oneLine(message)}`, shown);
  const last = lines.at(-1);
  const said = last === undefined ? "" : `; it last said: ${last}`;
  // A pod that may be tried again is not lost yet; a loop that has begun does not end by waiting.
  const mends = looping || pod.status?.phase === "Failed" ? "never" : "maybe";
  if (init) return cause(view, "init-container", `${where} fails with exit code ${exitCode}${said}`, shown, mends);
  const ends = exitCode === 0 ? "ends at once though it should go on running" : `ends with exit code ${exitCode}`;
  if (pod.status?.phase === "Failed") return cause(view, "pod-failed", `${where} ${ends}${said}`, shown);
  return cause(
    view,
    "crash-loop",
    `${where} ${ends}${looping ? " and is restarted again and again" : ""}${said}`,
    shown,
    mends,
  );
}

const isStartFailure = (exitCode: number, message: string) =>
  exitCode === 128 && /failed to (start|create)|runtime create failed/i.test(message);

/** Liveness and startup probes that fail end a container; the event is what tells it from a crash. */
function killedByProbe(view: View): Cause | undefined {
  const { pod, status, what } = view;
  const events = podEvents(view);
  const killing = events.findLast(
    ({ reason, message = "" }) => reason === "Killing" && /failed (liveness|startup) probe/.test(message),
  );
  if (!killing) return undefined;
  const kind = /failed (liveness|startup) probe/.exec(killing.message ?? "")![1]!;
  const title = kind === "liveness" ? "Liveness" : "Startup";
  const unhealthy = events.findLast(
    ({ reason, message = "" }) => reason === "Unhealthy" && message.startsWith(`${title} probe`),
  );
  // restarted since, and running well: a scar, not a wound
  if (status.ready && !unhealthy) return undefined;
  if (
    status.ready &&
    status.state?.running &&
    isOlder(killing, status.state.running.startedAt) &&
    !status.state.waiting
  ) {
    if (!unhealthy || isOlder(unhealthy, status.state.running.startedAt)) return undefined;
  }
  const why = probeReason(unhealthy);
  const shown = [...(unhealthy ? [eventLine(unhealthy)] : []), eventLine(killing)];
  if (status.restartCount > 0) shown.push(`${what} was restarted ${times(status.restartCount)}`);
  return cause(
    view,
    kind === "liveness" ? "liveness-probe" : "startup-probe",
    `the ${kind} probe of ${what} of ${name(pod)} fails, so that it is killed and restarted: ${why}`,
    shown,
  );
}

/** A container whose postStart hook fails is killed: that is not its own fault. */
function killedByHook(view: View): Cause | undefined {
  const failed = podEvents(view).findLast(({ reason }) => reason === "FailedPostStartHook");
  if (!failed) return undefined;
  const why = hookReason(oneLine(failed.message ?? "")).replace(/^PostStartHook failed$/, "it ended with an error");
  const sentence = `the postStart hook of ${view.what} of ${name(view.pod)} fails, so that it is killed and restarted: ${why}`;
  return cause(view, "hook-failed", sentence, [eventLine(failed)]);
}

function notReady(view: View): Cause | undefined {
  const { pod, status, what, container, init } = view;
  if (status.ready || init) return undefined;
  const unhealthy = podEvents(view).findLast(
    ({ reason, message = "" }) => reason === "Unhealthy" && /^(Readiness|Startup) probe/.test(message),
  );
  if (!unhealthy) return undefined;
  const starting = status.started === false && container?.startupProbe !== undefined;
  const kind = starting ? "startup" : "readiness";
  return cause(
    view,
    starting ? "startup-probe" : "readiness-probe",
    `the ${kind} probe of ${what} of ${name(pod)} fails: ${probeReason(unhealthy)}`,
    [`${what} is running but not ready`, eventLine(unhealthy)],
    "maybe",
  );
}

/** It ended by a fault and was started again; whether it stays up is open. */
function restarted(view: View): Cause | undefined {
  const ended = view.status.lastState?.terminated;
  if (!ended || view.status.ready) return undefined;
  const found = endedCause(view, ended, false);
  return found && { ...found, mends: "maybe" };
}

const probeReason = (event: ReadonlyEvent | undefined) =>
  oneLine(event?.message ?? "it gave no answer").replace(
    /^(Liveness|Readiness|Startup) probe (failed|errored)[^:]*:\s*/,
    "",
  ) || "it gave no output";

function podEvents({ evidence, pod, status, container }: View): ReadonlyEvent[] {
  const field = `{${container?.name ?? status.name}}`;
  return eventsOf(evidence, aboutOf(pod, "Pod")).filter(
    ({ involvedObject: { fieldPath, uid } }) =>
      (!fieldPath || fieldPath.endsWith(field)) && (!uid || uid === pod.metadata.uid),
  );
}

function isOlder(event: ReadonlyEvent, time: string | undefined): boolean {
  const at = event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp;
  return !!at && !!time && Date.parse(at) < Date.parse(time);
}

const name = (pod: ReadonlyPod) => `pod "${pod.metadata.name}"`;
const times = (n: number) => (n === 1 ? "once" : `${n} times`);

function cause(
  view: View,
  code: CauseCode,
  sentence: string,
  evidence: readonly string[],
  mends: Cause["mends"] = "never",
): Cause {
  return { code, sentence, evidence, about: aboutOf(view.pod, "Pod"), mends };
}
