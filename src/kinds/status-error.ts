/** A `Status` object (meta/v1): the body of every failed request. */
export interface Status {
  apiVersion: "v1";
  kind: "Status";
  metadata: Record<string, unknown>;
  status: "Success" | "Failure";
  message?: string;
  reason?: string;
  details?: StatusDetails;
  code?: number;
}

export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

/** The one error of the API: what the server sends as `Status` and what the client throws. */
export class StatusError extends Error {
  readonly status: Status;
  constructor(status: Status, options?: { cause?: unknown }) {
    super(
      status.message ?? status.reason ?? "unknown",
      options?.cause === undefined ? undefined : { cause: options.cause },
    );
    this.name = "StatusError";
    this.status = status;
  }
  /** HTTP code. */
  get code(): number {
    return this.status.code ?? 500;
  }
  get reason(): string {
    return this.status.reason ?? "";
  }
}

/** True for a StatusError with one of these reasons (`NotFound`, `AlreadyExists`, `Conflict`, …). */
export function isStatus(error: unknown, ...reasons: string[]): error is StatusError {
  return error instanceof StatusError && reasons.includes(error.reason);
}

/** @param reason undefined for the few errors that have none */
export function failure(
  code: number,
  reason: string | undefined,
  message: string,
  details?: StatusDetails,
): StatusError {
  return new StatusError({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    ...(reason === undefined ? {} : { reason }),
    ...(details ? { details } : {}),
    code,
  });
}

type Where = { group: string; resource: string };
const qualified = ({ group, resource }: Where) => (group ? `${resource}.${group}` : resource);
const detailsOf = ({ group, resource }: Where, name?: string): StatusDetails => ({
  ...(name ? { name } : {}),
  ...(group ? { group } : {}),
  kind: resource,
});

export const notFound = (at: Where, name: string): StatusError =>
  failure(404, "NotFound", `${qualified(at)} "${name}" not found`, detailsOf(at, name));
export const alreadyExists = (at: Where, name: string): StatusError =>
  failure(409, "AlreadyExists", `${qualified(at)} "${name}" already exists`, detailsOf(at, name));
export const conflict = (at: Where, name: string, why: string): StatusError =>
  failure(409, "Conflict", `Operation cannot be fulfilled on ${qualified(at)} "${name}": ${why}`, detailsOf(at, name));
export const modified = (at: Where, name: string): StatusError =>
  conflict(at, name, "the object has been modified; please apply your changes to the latest version and try again");
export const forbidden = (at: Where, name: string, why: string): StatusError =>
  failure(403, "Forbidden", `${qualified(at)}${name ? ` "${name}"` : ""} is forbidden: ${why}`, detailsOf(at, name));
export const badRequest = (message: string): StatusError => failure(400, "BadRequest", message);
export const methodNotSupported = (at: Where, verb: string): StatusError =>
  failure(405, "MethodNotAllowed", `${verb} is not supported on resources of kind "${qualified(at)}"`, detailsOf(at));
export const gone = (message: string): StatusError => failure(410, "Expired", message);
export const unauthorized = (): StatusError => failure(401, "Unauthorized", "Unauthorized");
export const internalError = (cause: unknown): StatusError => {
  const message = cause instanceof Error ? cause.message : String(cause);
  return failure(500, "InternalError", `Internal error occurred: ${message}`, { causes: [{ message }] });
};

/** 422 from validation. `causes` are `field.Error`s; the message lists them as Kubernetes does. */
export function invalid(at: { group: string; kind: string }, name: string, causes: readonly FieldError[]): StatusError {
  const texts = [...new Set(causes.map((cause) => `${cause.field}: ${cause.message}`))];
  const list = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  return failure(422, "Invalid", `${at.group ? `${at.kind}.${at.group}` : at.kind} "${name}" is invalid: ${list}`, {
    ...(name ? { name } : {}),
    ...(at.group ? { group: at.group } : {}),
    kind: at.kind,
    causes: causes.map((cause) => ({ reason: cause.reason, message: cause.message, field: cause.field })),
  });
}

/** One violated rule, as in apimachinery's field package: `message` is what follows `field: ` in the Status. */
export interface FieldError {
  /** `spec.containers[0].name` */
  field: string;
  reason:
    | "FieldValueRequired"
    | "FieldValueInvalid"
    | "FieldValueNotSupported"
    | "FieldValueDuplicate"
    | "FieldValueForbidden"
    | "FieldValueNotFound"
    | "FieldValueTooLong"
    | "FieldValueTooMany"
    | "FieldValueTooShort"
    | "FieldValueTypeInvalid"
    | "InternalError";
  /** `Required value: …`, `Invalid value: "…": …`, `Unsupported value: …` */
  message: string;
}
