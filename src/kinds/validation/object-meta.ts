import { deepEqual } from "#base";
import type { ObjectMetaLike, OwnerReferenceLike } from "../object.ts";
import type { FieldError } from "../status-error.ts";
import { eachItem, fieldError, immutable, invalidEach, nonNegative } from "./field-error.ts";
import { isDNS1123Label, isLabelValue, isQualifiedName, type NameCheck } from "./names.ts";

const ANNOTATIONS_LIMIT = 256 * 1024;

/** Metadata of a new object whose name was already generated. */
export function validateObjectMeta(
  meta: ObjectMetaLike,
  namespaced: boolean,
  nameCheck: NameCheck,
  path = "metadata",
): FieldError[] {
  const errors: FieldError[] = [];
  if (meta.generateName)
    errors.push(...invalidEach(`${path}.generateName`, meta.generateName, nameCheck(meta.generateName, true)));
  if (!meta.name) errors.push(fieldError.required(`${path}.name`, "name or generateName is required"));
  else errors.push(...invalidEach(`${path}.name`, meta.name, nameCheck(meta.name, false)));
  if (namespaced) {
    if (!meta.namespace) errors.push(fieldError.required(`${path}.namespace`));
    else errors.push(...invalidEach(`${path}.namespace`, meta.namespace, isDNS1123Label(meta.namespace)));
  } else if (meta.namespace) {
    errors.push(fieldError.forbidden(`${path}.namespace`, "not allowed on this type"));
  }
  errors.push(...nonNegative(`${path}.generation`, meta.generation), ...validateCommon(meta, path));
  return [...errors, ...validateFinalizers(meta.finalizers ?? [], `${path}.finalizers`)];
}

/** What an update may not change in metadata. */
export function validateObjectMetaUpdate(meta: ObjectMetaLike, old: ObjectMetaLike, path = "metadata"): FieldError[] {
  const errors: FieldError[] = [];
  if (old.deletionTimestamp) {
    const extra = (meta.finalizers ?? []).filter((finalizer) => !old.finalizers?.includes(finalizer)).sort();
    if (extra.length > 0) {
      const list = `[]string{${[...new Set(extra)].map((item) => JSON.stringify(item)).join(", ")}}`;
      const text = `no new finalizers can be added if the object is being deleted, found new finalizers ${list}`;
      errors.push(fieldError.forbidden(`${path}.finalizers`, text));
    }
  }
  if (!meta.resourceVersion) {
    errors.push(
      fieldError.invalid(`${path}.resourceVersion`, meta.resourceVersion ?? "", "must be specified for an update"),
    );
  }
  if ((meta.generation ?? 0) < (old.generation ?? 0)) {
    errors.push(fieldError.invalid(`${path}.generation`, meta.generation ?? 0, "must not be decremented"));
  }
  const texts = ["name", "namespace", "uid"] as const;
  for (const name of texts) errors.push(...immutable(`${path}.${name}`, meta[name] ?? "", old[name] ?? "", deepEqual));
  const rest = ["deletionTimestamp", "deletionGracePeriodSeconds"] as const;
  for (const name of rest)
    errors.push(...immutable(`${path}.${name}`, meta[name] ?? null, old[name] ?? null, deepEqual));
  return [...errors, ...validateCommon(meta, path), ...validateFinalizers(meta.finalizers ?? [], `${path}.finalizers`)];
}

function validateCommon(meta: ObjectMetaLike, path: string): FieldError[] {
  return [
    ...validateLabels(meta.labels, `${path}.labels`),
    ...validateAnnotations(meta.annotations, `${path}.annotations`),
    ...validateOwnerReferences(meta.ownerReferences ?? [], `${path}.ownerReferences`),
    ...validateManagedFields(meta.managedFields ?? [], `${path}.managedFields`),
  ];
}

export function validateLabels(
  labels: Readonly<Record<string, string>> | null | undefined,
  path: string,
): FieldError[] {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...validateLabelName(key, path),
    ...invalidEach(path, value, isLabelValue(value)),
  ]);
}

export function validateLabelName(name: string, path: string): FieldError[] {
  return invalidEach(path, name, isQualifiedName(name));
}

export function validateAnnotations(
  annotations: Readonly<Record<string, string>> | null | undefined,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  let size = 0;
  for (const [key, value] of Object.entries(annotations ?? {})) {
    errors.push(...invalidEach(path, key, isQualifiedName(key.toLowerCase())));
    size += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (size > ANNOTATIONS_LIMIT) errors.push(fieldError.tooLong(path, ANNOTATIONS_LIMIT));
  return errors;
}

function validateOwnerReferences(references: readonly OwnerReferenceLike[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  let controller = "";
  for (const reference of references) {
    const version = (reference.apiVersion ?? "").split("/").at(-1);
    if (!version)
      errors.push(fieldError.invalid(`${path}.apiVersion`, reference.apiVersion ?? "", "version must not be empty"));
    for (const name of ["kind", "name", "uid"] as const) {
      if (!reference[name])
        errors.push(fieldError.invalid(`${path}.${name}`, reference[name] ?? "", "must not be empty"));
    }
    if (reference.apiVersion === "v1" && reference.kind === "Event") {
      errors.push(fieldError.invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner"));
    }
    if (!reference.controller) continue;
    const current = `${reference.kind}/${reference.name}`;
    const text = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${current}`;
    if (controller) errors.push(fieldError.invalid(path, references, text));
    else controller = current;
  }
  return errors;
}

function validateFinalizers(finalizers: readonly string[], path: string): FieldError[] {
  const errors = finalizers.flatMap((finalizer) => invalidEach(path, finalizer, isQualifiedName(finalizer)));
  if (finalizers.includes("orphan") && finalizers.includes("foregroundDeletion")) {
    errors.push(fieldError.invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"));
  }
  errors.push(
    ...eachItem(finalizers, path, (name, at) =>
      name.includes("/") || STANDARD_FINALIZERS.has(name)
        ? []
        : [fieldError.invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified")],
    ),
  );
  return errors;
}
const STANDARD_FINALIZERS = new Set(["kubernetes", "orphan", "foregroundDeletion"]);

interface ManagedFields {
  operation?: string;
  fieldsType?: string;
  manager?: string;
  subresource?: string;
}

function validateManagedFields(entries: readonly unknown[], path: string): FieldError[] {
  return eachItem(entries as readonly ManagedFields[], path, (entry, at) => {
    const errors: FieldError[] = [];
    if (entry.operation !== "Apply" && entry.operation !== "Update") {
      errors.push(fieldError.invalid(`${at}.operation`, entry.operation ?? "", "must be `Apply` or `Update`"));
    }
    if (entry.fieldsType && entry.fieldsType !== "FieldsV1") {
      errors.push(fieldError.invalid(`${at}.fieldsType`, entry.fieldsType, "must be `FieldsV1`"));
    }
    if ((entry.subresource ?? "").length > 256) errors.push(fieldError.tooLong(`${at}.subresource`, 256));
    return [...errors, ...validateFieldManager(entry.manager ?? "", `${at}.manager`)];
  });
}

/** The `fieldManager` of a request or a managedFields entry. */
export function validateFieldManager(manager: string, path: string): FieldError[] {
  const errors = Buffer.byteLength(manager) > 128 ? [fieldError.tooLong(path, 128)] : [];
  let position = 0;
  for (const char of manager) {
    if (!/[\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.test(char)) {
      const code = (char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
      errors.push(fieldError.invalid(path, manager, `invalid character U+${code} (at position ${position})`));
    }
    position += Buffer.byteLength(char);
  }
  return errors;
}
