import type { Lifecycle, LifecycleHandler, PodOS, Probe } from "../../generated/types.ts";
import type { FieldError } from "../../status-error.ts";
import { fieldError, invalidEach, nonNegative } from "../../validation/field-error.ts";
import { isHTTPHeaderName, isPortName, isPortNumber } from "../../validation/names.ts";

type Handler = LifecycleHandler & Pick<Probe, "grpc">;
type GracePeriod = number | undefined;

export function validateLiveness(probe: Probe | undefined, gracePeriod: GracePeriod, path: string): FieldError[] {
  if (!probe) return [];
  const errors = validateProbe(probe, gracePeriod, path);
  if (probe.successThreshold !== 1) {
    errors.push(fieldError.invalid(`${path}.successThreshold`, probe.successThreshold ?? 0, "must be 1"));
  }
  return errors;
}

export function validateReadiness(probe: Probe | undefined, gracePeriod: GracePeriod, path: string): FieldError[] {
  if (!probe) return [];
  const errors = validateProbe(probe, gracePeriod, path);
  if (probe.terminationGracePeriodSeconds !== undefined) {
    const text = "must not be set for readinessProbes";
    errors.push(fieldError.invalid(`${path}.terminationGracePeriodSeconds`, probe.terminationGracePeriodSeconds, text));
  }
  return errors;
}

function validateProbe(probe: Probe, gracePeriod: GracePeriod, path: string): FieldError[] {
  const errors = validateHandler(probe, gracePeriod, path);
  const fields = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
  ] as const;
  for (const field of fields) errors.push(...nonNegative(`${path}.${field}`, probe[field]));
  const own = probe.terminationGracePeriodSeconds;
  if (own !== undefined && own <= 0) {
    errors.push(fieldError.invalid(`${path}.terminationGracePeriodSeconds`, own, "must be greater than 0"));
  }
  return errors;
}

function validateHandler(handler: Handler, gracePeriod: GracePeriod, path: string): FieldError[] {
  const kinds = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] as const;
  const present = kinds.filter((kind) => handler[kind] !== undefined);
  if (present.length === 0) return [fieldError.required(path, "must specify a handler type")];
  return present.flatMap((kind, i) =>
    i > 0
      ? [fieldError.forbidden(`${path}.${kind}`, "may not specify more than 1 handler type")]
      : validateAction(handler, kind, gracePeriod, `${path}.${kind}`),
  );
}

function validateAction(handler: Handler, kind: keyof Handler, gracePeriod: GracePeriod, path: string): FieldError[] {
  switch (kind) {
    case "exec":
      return (handler.exec?.command ?? []).length > 0 ? [] : [fieldError.required(`${path}.command`)];
    case "httpGet":
      return validateHttpGet(handler.httpGet!, path);
    case "tcpSocket":
      return validatePort(handler.tcpSocket?.port ?? 0, `${path}.port`);
    case "grpc":
      return validatePort(handler.grpc?.port ?? 0, `${path}.port`);
    default: {
      const seconds = handler.sleep?.seconds ?? 0;
      if (gracePeriod === undefined || (seconds >= 0 && seconds <= gracePeriod)) return [];
      const text = `must be non-negative and less than terminationGracePeriodSeconds (${gracePeriod})`;
      return [fieldError.invalid(path, seconds, text)];
    }
  }
}

function validateHttpGet(request: NonNullable<Handler["httpGet"]>, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!request.path) errors.push(fieldError.required(`${path}.path`));
  errors.push(...validatePort(request.port, `${path}.port`));
  if (request.scheme !== "HTTP" && request.scheme !== "HTTPS") {
    errors.push(fieldError.notSupported(`${path}.scheme`, request.scheme ?? "", ["HTTP", "HTTPS"]));
  }
  for (const { name } of request.httpHeaders ?? []) {
    errors.push(...invalidEach(`${path}.httpHeaders`, name, isHTTPHeaderName(name)));
  }
  return errors;
}

/** A port by number or by name. */
export function validatePort(port: number | string, path: string): FieldError[] {
  return invalidEach(path, port, typeof port === "number" ? isPortNumber(port) : isPortName(port));
}

export function validateLifecycle(
  lifecycle: Lifecycle,
  gracePeriod: GracePeriod,
  path: string,
  os: PodOS | undefined,
): FieldError[] {
  const errors: FieldError[] = [];
  if (lifecycle.postStart) errors.push(...validateHandler(lifecycle.postStart, gracePeriod, `${path}.postStart`));
  if (lifecycle.preStop) errors.push(...validateHandler(lifecycle.preStop, gracePeriod, `${path}.preStop`));
  if (lifecycle.stopSignal === undefined) return errors;
  const at = `${path}.stopSignal`;
  if (!os) errors.push(fieldError.forbidden(at, "may not be set for containers with empty `spec.os.name`"));
  else if (!isSignal(lifecycle.stopSignal, os.name)) {
    errors.push(
      fieldError.notSupported(at, lifecycle.stopSignal, os.name === "windows" ? WINDOWS_SIGNALS : LINUX_SIGNALS),
    );
  }
  return errors;
}

const WINDOWS_SIGNALS = ["SIGKILL", "SIGTERM"];
const REAL_TIME = Array.from({ length: 15 }, (_, i) => [`SIGRTMAX-${i}`, `SIGRTMIN+${i + 1}`]).flat();
const LINUX_SIGNALS = [
  ...REAL_TIME.filter((name) => name !== "SIGRTMAX-0"),
  ..."ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT RTMAX RTMIN SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ"
    .split(" ")
    .map((name) => `SIG${name}`),
].sort();

function isSignal(name: string, os: string): boolean {
  return os === "windows" ? WINDOWS_SIGNALS.includes(name) : os !== "linux" || LINUX_SIGNALS.includes(name);
}
