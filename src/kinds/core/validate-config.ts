import { deepEqual, scanJson } from "#base";
import type { ConfigMap, Secret } from "../generated/types.ts";
import type { FieldError } from "../status-error.ts";
import { fieldError, immutable, invalidEach } from "../validation/field-error.ts";
import { isConfigMapKey } from "../validation/names.ts";

/** What a ConfigMap or Secret may hold, bytes. */
const MAX_SIZE = 2 ** 20;

/** https://kubernetes.io/docs/concepts/configuration/configmap/ */
export function validateConfigMap({ data = {}, binaryData = {} }: ConfigMap): FieldError[] {
  const errors: FieldError[] = [];
  let size = 0;
  for (const [key, value] of Object.entries(data)) {
    errors.push(...invalidEach(`data[${key}]`, key, isConfigMapKey(key)));
    if (Object.hasOwn(binaryData, key))
      errors.push(fieldError.invalid(`data[${key}]`, key, "duplicate of key present in binaryData"));
    size += Buffer.byteLength(value);
  }
  for (const [key, value] of Object.entries(binaryData)) {
    errors.push(...invalidEach(`binaryData[${key}]`, key, isConfigMapKey(key)));
    size += decodedSize(value);
  }
  if (size > MAX_SIZE) errors.push(fieldError.tooLong("[]", MAX_SIZE));
  return errors;
}

export function validateConfigMapUpdate(map: ConfigMap, old: ConfigMap): FieldError[] {
  return [
    ...frozen(map, old, "data", map.data ?? {}, old.data ?? {}),
    ...frozen(map, old, "binaryData", map.binaryData ?? {}, old.binaryData ?? {}),
    ...validateConfigMap(map),
  ];
}

interface Freezable {
  readonly immutable?: boolean;
}

/** @param field named in the error where its content may not change any more; `immutable` itself is looked at with `data` */
function frozen(now: Freezable, old: Freezable, field: string, value: unknown, before: unknown): FieldError[] {
  if (!old.immutable) return [];
  const text = "field is immutable when `immutable` is set";
  const released = field === "data" && !now.immutable ? [fieldError.forbidden("immutable", text)] : [];
  return deepEqual(value, before) ? released : [...released, fieldError.forbidden(field, text)];
}

/** https://kubernetes.io/docs/concepts/configuration/secret/#secret-types */
export function validateSecret(secret: Secret): FieldError[] {
  const { data = {}, type, metadata } = secret;
  const errors: FieldError[] = [];
  let size = 0;
  for (const [key, value] of Object.entries(data)) {
    errors.push(...invalidEach(`data[${key}]`, key, isConfigMapKey(key)));
    size += decodedSize(value);
  }
  if (size > MAX_SIZE) errors.push(fieldError.tooLong("data", MAX_SIZE));
  const required = (key: string) => fieldError.required(`data[${key}]`);
  switch (type) {
    case "kubernetes.io/service-account-token":
      if (!metadata.annotations?.[SERVICE_ACCOUNT])
        errors.push(fieldError.required(`metadata.annotations[${SERVICE_ACCOUNT}]`));
      break;
    case "kubernetes.io/dockercfg":
      errors.push(...validateJson(data, ".dockercfg"));
      break;
    case "kubernetes.io/dockerconfigjson":
      errors.push(...validateJson(data, ".dockerconfigjson"));
      break;
    case "kubernetes.io/basic-auth":
      if (!("username" in data) && !("password" in data)) errors.push(required("username"), required("password"));
      break;
    case "kubernetes.io/ssh-auth":
      if (!data["ssh-privatekey"]) errors.push(required("ssh-privatekey"));
      break;
    case "kubernetes.io/tls":
      for (const key of ["tls.crt", "tls.key"]) if (!(key in data)) errors.push(required(key));
      break;
  }
  return errors;
}
const SERVICE_ACCOUNT = "kubernetes.io/service-account.name";

function validateJson(data: Readonly<Record<string, string>>, key: string): FieldError[] {
  if (data[key] === undefined) return [fieldError.required(`data[${key}]`)];
  const { error } = scanJson(Buffer.from(data[key], "base64").toString("utf8"));
  return error === undefined ? [] : [fieldError.invalid(`data[${key}]`, "<secret contents redacted>", error)];
}

export function validateSecretUpdate(secret: Secret, old: Secret): FieldError[] {
  return [
    ...immutable("type", secret.type ?? "", old.type ?? "", deepEqual),
    ...frozen(secret, old, "data", secret.data ?? {}, old.data ?? {}),
    ...validateSecret(secret),
  ];
}

function decodedSize(base64: string): number {
  return Math.floor((base64.replace(/=+$/, "").length * 3) / 4);
}
