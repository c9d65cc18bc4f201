import type { DeepReadonly } from "#base";
import {
  type ConfigMap,
  type Container,
  type EnvVarSource,
  isStatus,
  type Pod,
  type Secret,
  type Service,
} from "#kinds";
import { readEnvFile } from "./env-file.ts";
import { expand, lookupIn } from "./expand.ts";
import { podField, type PodFacts } from "./field-path.ts";
import { resourceField } from "./resource-field.ts";
import { serviceEnvironment } from "./service-env.ts";

/** Where the values of a container's environment come from. */
export interface EnvironmentSources extends PodFacts {
  /** @throws StatusError NotFound `configmap "x" not found` */
  configMap(namespace: string, name: string): Promise<DeepReadonly<ConfigMap>>;
  /** @throws StatusError NotFound `secret "x" not found` */
  secret(namespace: string, name: string): Promise<DeepReadonly<Secret>>;
  /** Services of all namespaces. */
  readonly services: readonly DeepReadonly<Service>[];
  /** Text of a file in one of the pod's volumes, and the path to name in errors. Never leaves the volume. */
  volumeFile(volume: string, path: string): Promise<{ path: string; text: string }>;
  /** `status.allocatable` of the node. */
  readonly allocatable: Readonly<Record<string, string>>;
}

/**
 * The environment of a container, each name once: `envFrom`, then `env` in its order (later wins, and may refer to earlier
 * ones and to services), then the service variables that nothing has replaced.
 *
 * Keys of config maps and secrets are taken as they are: since Kubernetes 1.34 all that can be a key can be a name.
 *
 * Source: https://kubernetes.io/docs/tasks/inject-data-application/
 *
 * @throws Error with the reason that `CreateContainerConfigError` shows
 */
export async function containerEnvironment(
  pod: DeepReadonly<Pod>,
  container: DeepReadonly<Container>,
  sources: EnvironmentSources,
): Promise<{ name: string; value: string }[]> {
  const namespace = pod.metadata?.namespace ?? "";
  const services = serviceEnvironment(sources.services, namespace, pod.spec?.enableServiceLinks ?? true);
  const values = await valuesFrom(container, namespace, sources);
  for (const variable of container.env ?? []) {
    const value = variable.value
      ? expand(variable.value, lookupIn(values, services))
      : variable.valueFrom
        ? await valueFrom(variable.valueFrom, pod, container, sources)
        : "";
    if (value === undefined) continue;
    // An override keeps the place of its last declaration.
    values.delete(variable.name);
    values.set(variable.name, value);
  }
  for (const [name, value] of services) if (!values.has(name)) values.set(name, value);
  return [...values].map(([name, value]) => ({ name, value }));
}

async function valuesFrom(
  container: DeepReadonly<Container>,
  namespace: string,
  sources: EnvironmentSources,
): Promise<Map<string, string>> {
  const values = new Map<string, string>();
  for (const { prefix = "", configMapRef, secretRef } of container.envFrom ?? []) {
    if (configMapRef) {
      const configMap = await found(configMapRef.optional, sources.configMap(namespace, configMapRef.name ?? ""));
      for (const [key, value] of Object.entries(configMap?.data ?? {})) values.set(prefix + key, value);
    } else if (secretRef) {
      const secret = await found(secretRef.optional, sources.secret(namespace, secretRef.name ?? ""));
      for (const [key, value] of Object.entries(secret?.data ?? {})) values.set(prefix + key, decode(value));
    }
  }
  return values;
}

/** Undefined: the source is optional and not there, the variable is not set. */
async function valueFrom(
  source: DeepReadonly<EnvVarSource>,
  pod: DeepReadonly<Pod>,
  container: DeepReadonly<Container>,
  sources: EnvironmentSources,
): Promise<string | undefined> {
  const namespace = pod.metadata?.namespace ?? "";
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = source;
  if (fieldRef) return podField(pod, fieldRef.fieldPath, sources);
  if (resourceFieldRef) return resourceField(resourceFieldRef, pod, container, sources.allocatable);
  if (configMapKeyRef) {
    const { name = "", key, optional } = configMapKeyRef;
    const configMap = await found(optional, sources.configMap(namespace, name));
    const value = configMap?.data?.[key];
    if (value === undefined && !optional) {
      throw new Error(`couldn't find key ${key} in ConfigMap ${namespace}/${name}`);
    }
    return value;
  }
  if (secretKeyRef) {
    const { name = "", key, optional } = secretKeyRef;
    const secret = await found(optional, sources.secret(namespace, name));
    const value = secret?.data?.[key];
    if (value === undefined && !optional) throw new Error(`couldn't find key ${key} in Secret ${namespace}/${name}`);
    return value === undefined ? undefined : decode(value);
  }
  if (fileKeyRef) return fileValue(fileKeyRef, sources);
  return "";
}

async function fileValue(
  reference: DeepReadonly<NonNullable<EnvVarSource["fileKeyRef"]>>,
  sources: EnvironmentSources,
): Promise<string | undefined> {
  const file = await sources.volumeFile(reference.volumeName, reference.path);
  let value: string | undefined;
  try {
    value = readEnvFile(file.text, reference.key);
  } catch (cause) {
    throw new Error("couldn't parse env file", { cause });
  }
  if (value) return value;
  if (reference.optional) return undefined;
  throw new Error(`environment variable key "${reference.key}" not found in file "${file.path}"`);
}

async function found<T>(optional: boolean | undefined, object: Promise<T>): Promise<T | undefined> {
  try {
    return await object;
  } catch (error) {
    if (optional && isStatus(error, "NotFound")) return undefined;
    throw error;
  }
}

const decode = (base64: string) => Buffer.from(base64, "base64").toString("utf8");
