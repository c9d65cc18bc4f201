import type { Lifecycle, LifecycleHandler, Probe } from "../../generated/types.ts";
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

export function validateLifecycle(lifecycle: Lifecycle, gracePeriod: GracePeriod, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (lifecycle.postStart) errors.push(...validateHandler(lifecycle.postStart, gracePeriod, `${path}.postStart`));
  if (lifecycle.preStop) errors.push(...validateHandler(lifecycle.preStop, gracePeriod, `${path}.preStop`));
  return errors;
}
