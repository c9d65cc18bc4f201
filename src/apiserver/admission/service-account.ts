import type { Clock, Random } from "#base";
import { type Container, type Pod, resources, type ServiceAccount, type Volume } from "#kinds";
import type { AdmissionAttributes, AdmissionPlugin, Reader } from "../ports.ts";
import { isAbout, objectOf, refuse } from "./support.ts";

const MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX = "kube-api-access-";
const MIRROR = "kubernetes.io/config.mirror";
const ENFORCE_SECRETS = "kubernetes.io/enforce-mountable-secrets";
/** Seconds; a value that the API server recognizes as "renewed by the kubelet, tolerate late renewal". */
const TOKEN_SECONDS = 3607;
/** The default ServiceAccount is made by a controller just after its namespace: wait for it, milliseconds. */
const DEFAULT_ACCOUNT_WAIT = 1500;

/**
 * Gives every pod a ServiceAccount, its token volume and its image pull secrets.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#serviceaccount-admission-controller
 */
export function createServiceAccountAdmission(deps: { reader: Reader; random: Random; clock: Clock }): AdmissionPlugin {
  return {
    name: "ServiceAccount",
    handles: (attributes) =>
      (attributes.operation === "CREATE" && isAbout(attributes, resources.pods)) ||
      (attributes.operation === "UPDATE" && isAbout(attributes, resources.pods, "ephemeralcontainers")),
    async admit(attributes) {
      if (attributes.operation !== "CREATE") return;
      const pod = objectOf<Pod>(attributes);
      if (isMirror(pod)) return validateMirror(pod, attributes);
      const spec = pod.spec!;
      spec.serviceAccountName ||= "default";
      // The old name of the field goes with the new one in every answer.
      spec.serviceAccount = spec.serviceAccountName;
      const account = await accountOf(deps, attributes, spec.serviceAccountName);
      if (spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true)
        mountToken(pod, deps.random);
      const pullSecrets = account.imagePullSecrets ?? [];
      if (!spec.imagePullSecrets?.length && pullSecrets.length) {
        spec.imagePullSecrets = pullSecrets.map(({ name }) => ({ ...(name === undefined ? {} : { name }) }));
      }
    },
    async validate(attributes) {
      const pod = objectOf<Pod>(attributes);
      if (isMirror(pod)) return validateMirror(pod, attributes);
      const name = pod.spec?.serviceAccountName;
      if (!name)
        throw refuse(
          attributes,
          `no service account specified for pod ${attributes.namespace}/${pod.metadata?.name ?? ""}`,
        );
      const account = await accountOf(deps, attributes, name);
      if (account.metadata?.annotations?.[ENFORCE_SECRETS] !== "true") return;
      const why =
        attributes.operation === "CREATE" ? secretNotAllowed(account, pod) : ephemeralSecretNotAllowed(account, pod);
      if (why) throw refuse(attributes, why);
    },
  };
}

const isMirror = (pod: Pod) => pod.metadata?.annotations?.[MIRROR] !== undefined;

async function accountOf(
  deps: { reader: Reader; clock: Clock },
  attributes: AdmissionAttributes,
  name: string,
): Promise<ServiceAccount> {
  const { namespace } = attributes;
  const read = () => deps.reader.get(resources.serviceAccounts, namespace, name);
  const found = read() ?? (name === "default" ? await appears(deps, read) : undefined);
  if (found) return found;
  const where = `${namespace}/${name}`;
  throw refuse(attributes, `error looking up service account ${where}: serviceaccount "${name}" not found`);
}

/** What `read` gives once the account is there; undefined when it does not come in time. */
function appears(
  deps: { reader: Reader; clock: Clock },
  read: () => ServiceAccount | undefined,
): Promise<ServiceAccount | undefined> {
  return new Promise((resolve) => {
    const finish = () => {
      timer.clear();
      changes[Symbol.dispose]();
      resolve(read());
    };
    const timer = deps.clock.setTimer(finish, DEFAULT_ACCOUNT_WAIT);
    const changes = deps.reader.onChange(resources.serviceAccounts, () => {
      if (read()) finish();
    });
  });
}

function mountToken(pod: Pod, random: Random): void {
  const spec = pod.spec!;
  const existing = spec.volumes?.find(({ name }) => name.startsWith(VOLUME_PREFIX))?.name;
  const name = existing ?? `${VOLUME_PREFIX}${random.suffix(5)}`;
  let needed = false;
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    if (container.volumeMounts?.some(({ mountPath }) => mountPath === MOUNT_PATH)) continue;
    container.volumeMounts = [...(container.volumeMounts ?? []), { name, readOnly: true, mountPath: MOUNT_PATH }];
    needed = true;
  }
  if (needed && !existing) spec.volumes = [...(spec.volumes ?? []), tokenVolume(name)];
}

function tokenVolume(name: string): Volume {
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: "token" } },
        { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
        {
          downwardAPI: {
            items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }],
          },
        },
      ],
      defaultMode: 0o644,
    },
  };
}

function validateMirror(pod: Pod, attributes: AdmissionAttributes): void {
  const spec = pod.spec!;
  if (spec.serviceAccountName) throw refuse(attributes, "a mirror pod may not reference service accounts");
  const volumes = spec.volumes ?? [];
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  const secrets =
    spec.imagePullSecrets?.length ||
    volumes.some((volume) => volume.secret || volume.projected?.sources?.some((source) => source.secret)) ||
    containers.some(
      ({ env, envFrom }) =>
        env?.some((entry) => entry.valueFrom?.secretKeyRef) || envFrom?.some((entry) => entry.secretRef),
    );
  if (secrets) throw refuse(attributes, "a mirror pod may not reference secrets");
  if (volumes.some((volume) => volume.projected?.sources?.some((source) => source.serviceAccountToken))) {
    throw refuse(attributes, "a mirror pod may not use ServiceAccountToken volume projections");
  }
}

/** Why a pod of an account that lists its secrets may not be; undefined when it may. */
function secretNotAllowed(account: ServiceAccount, pod: Pod): string | undefined {
  const allowed = new Set(account.secrets?.map(({ name }) => name));
  const by = `because service account ${account.metadata?.name} does not reference that`;
  for (const { secret } of pod.spec?.volumes ?? []) {
    if (secret && !allowed.has(secret.secretName)) {
      return `volume with secret.secretName="${secret.secretName}" is not allowed ${by} secret`;
    }
  }
  const inContainers =
    containerSecret("init container", pod.spec?.initContainers, allowed, by) ??
    containerSecret("container", pod.spec?.containers, allowed, by);
  if (inContainers) return inContainers;
  const pull = new Set(account.imagePullSecrets?.map(({ name }) => name));
  const at = pod.spec?.imagePullSecrets?.findIndex(({ name }) => !pull.has(name)) ?? -1;
  if (at < 0) return undefined;
  return `imagePullSecrets[${at}].name="${pod.spec?.imagePullSecrets?.[at]?.name}" is not allowed ${by} imagePullSecret`;
}

function ephemeralSecretNotAllowed(account: ServiceAccount, pod: Pod): string | undefined {
  const by = `because service account ${account.metadata?.name} does not reference that`;
  const allowed = new Set(account.secrets?.map(({ name }) => name));
  return containerSecret("ephemeral container", pod.spec?.ephemeralContainers, allowed, by);
}

function containerSecret(
  what: string,
  containers: readonly Pick<Container, "name" | "env" | "envFrom">[] | undefined,
  allowed: ReadonlySet<string | undefined>,
  by: string,
): string | undefined {
  for (const { name, env, envFrom } of containers ?? []) {
    for (const entry of env ?? []) {
      const secret = entry.valueFrom?.secretKeyRef;
      if (secret && !allowed.has(secret.name)) {
        return `${what} ${name} with envVar ${entry.name} referencing secret.secretName="${secret.name}" is not allowed ${by} secret`;
      }
    }
    for (const { secretRef } of envFrom ?? []) {
      if (secretRef && !allowed.has(secretRef.name)) {
        return `${what} ${name} with envFrom referencing secret.secretName="${secretRef.name}" is not allowed ${by} secret`;
      }
    }
  }
  return undefined;
}
