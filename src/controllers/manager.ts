import { type CertificateSigner, createCertificateController } from "./certificates/signer.ts";
import { createCronJobController } from "./cronjob/cronjob.ts";
import { createDaemonSetController } from "./daemonset/daemonset.ts";
import { createDeploymentController } from "./deployment/deployment.ts";
import { createClusterRoleAggregation } from "./clusterrole/aggregation.ts";
import { createDisruptionController } from "./disruption/disruption.ts";
import { createEndpointsController } from "./endpoints/endpoints.ts";
import { createEndpointSliceController } from "./endpoints/endpointslice.ts";
import { createEndpointSliceMirroringController } from "./endpoints/mirroring.ts";
import { createGarbageCollector } from "./garbage-collector/garbage-collector.ts";
import { createJobController } from "./job/job.ts";
import { createNamespaceController } from "./namespace/namespace.ts";
import { createNodeLifecycleController } from "./node/lifecycle.ts";
import { createTaintEvictionController } from "./node/taint-eviction.ts";
import { createPodGC } from "./pod-gc/pod-gc.ts";
import { createResourceQuotaController } from "./quota/resource-quota.ts";
import { createReplicaSetController, createReplicationController } from "./replicaset/replicaset.ts";
import type { Controller, ControllerDeps } from "./runtime/controller.ts";
import { createRootCAPublisher, createServiceAccountController } from "./serviceaccount/serviceaccount.ts";
import { createIPAddressController } from "./service-cidr/ip-addresses.ts";
import { createServiceCIDRController } from "./service-cidr/service-cidr.ts";
import { createTokenSecretController, type TokenSecretsOptions } from "./serviceaccount/token-secrets.ts";
import { createStatefulSetController } from "./statefulset/statefulset.ts";
import { createTTLAfterFinishedController } from "./ttl/ttl-after-finished.ts";
import { createVolumeBinder } from "./volume/binder.ts";
import { createEphemeralVolumeController } from "./volume/ephemeral.ts";
import { createLocalPathProvisioner, ensureLocalPathClass, type LocalPathOptions } from "./volume/local-path.ts";
import { createClaimProtection, createVolumeProtection } from "./volume/protection.ts";

export interface ControllersOptions {
  /** Names of the controllers to run. Default: all of `controllerNames`. */
  which?: readonly string[];
  /** The CA that signs the API server's certificate, PEM. Without it no `kube-root-ca.crt` is published. */
  rootCA?: string;
  /** Terminated pods that are kept, the oldest going first. Default 12500, as kube-controller-manager; 0 = all. */
  terminatedPodThreshold?: number;
  /** Signs tokens for Secrets of type `kubernetes.io/service-account-token`. Without it they stay empty. */
  signToken?: TokenSecretsOptions["sign"];
  /** Signs certificates. Without it nobody answers certificate requests. */
  certificates?: CertificateSigner;
  /** How the controller acts that has this ServiceAccount in kube-system. Default: as `deps` says. */
  identity?(account: string): Pick<ControllerDeps, "client" | "recorder">;
  /** Where volumes of the default StorageClass `local-path` live. Without it there is neither class nor provisioner. */
  localPath?: LocalPathOptions;
}

export interface Controllers extends AsyncDisposable {
  /** Resolves when every controller has filled its caches and works. Rejects when one could not start. */
  readonly started: Promise<void>;
  /** True while no controller has anything to do or to wait for. */
  readonly idle: boolean;
}

type Factory = (deps: ControllerDeps, options: ControllersOptions) => Controller | undefined;

/** In the order of starting; stopped in reverse. */
const FACTORIES: Readonly<Record<string, Factory>> = {
  serviceaccount: createServiceAccountController,
  "root-ca-certificate-publisher": (deps, { rootCA }) => (rootCA ? createRootCAPublisher(deps, { rootCA }) : undefined),
  "serviceaccount-token": (deps, { rootCA, signToken }) =>
    rootCA && signToken ? createTokenSecretController(deps, { rootCA, sign: signToken }) : undefined,
  certificate: (deps, { certificates }) => (certificates ? createCertificateController(deps, certificates) : undefined),
  namespace: createNamespaceController,
  deployment: createDeploymentController,
  replicaset: createReplicaSetController,
  replicationcontroller: createReplicationController,
  statefulset: createStatefulSetController,
  daemonset: createDaemonSetController,
  job: createJobController,
  cronjob: createCronJobController,
  "ttl-after-finished": createTTLAfterFinishedController,
  endpointslice: createEndpointSliceController,
  endpoints: createEndpointsController,
  endpointslicemirroring: createEndpointSliceMirroringController,
  "service-cidrs": createServiceCIDRController,
  "service-ip-addresses": createIPAddressController,
  "persistentvolume-binder": (deps, { localPath }) =>
    createVolumeBinder(deps, localPath && createLocalPathProvisioner(deps, localPath)),
  "ephemeral-volume": createEphemeralVolumeController,
  "persistentvolumeclaim-protection": createClaimProtection,
  "persistentvolume-protection": createVolumeProtection,
  disruption: createDisruptionController,
  resourcequota: createResourceQuotaController,
  "clusterrole-aggregation": createClusterRoleAggregation,
  "node-lifecycle": createNodeLifecycleController,
  "taint-eviction": createTaintEvictionController,
  "pod-garbage-collector": createPodGC,
  "garbage-collector": createGarbageCollector,
};

/** ServiceAccounts of the controllers, where they are not called `<name>-controller`. */
const ACCOUNTS: Readonly<Record<string, string>> = {
  serviceaccount: "service-account-controller",
  "root-ca-certificate-publisher": "root-ca-cert-publisher",
  replicationcontroller: "replication-controller",
  daemonset: "daemon-set-controller",
  endpoints: "endpoint-controller",
  "persistentvolume-binder": "persistent-volume-binder",
  "persistentvolumeclaim-protection": "pvc-protection-controller",
  "persistentvolume-protection": "pv-protection-controller",
  "node-lifecycle": "node-controller",
  "taint-eviction": "node-controller",
  "pod-garbage-collector": "pod-garbage-collector",
  "garbage-collector": "generic-garbage-collector",
};

/** What the original does as itself (kube-apiserver, or the token controller), where no controller's ServiceAccount may do it. */
const OF_THE_SERVER = new Set(["service-ip-addresses", "serviceaccount-token"]);

/** Names that `which` may hold. */
export const controllerNames: readonly string[] = Object.keys(FACTORIES);

/** Starts controllers; they run until disposed. @throws RangeError for an unknown name */
export function startControllers(deps: ControllerDeps, options: ControllersOptions = {}): Controllers {
  const wanted = options.which ?? controllerNames;
  const unknown = wanted.filter((name) => !FACTORIES[name]);
  if (unknown.length)
    throw new RangeError(`no controller is called ${unknown.join(", ")}; there are: ${controllerNames.join(", ")}`);
  const controllers = controllerNames
    .filter((name) => wanted.includes(name))
    .flatMap((name) => {
      const identity = OF_THE_SERVER.has(name) ? {} : options.identity?.(ACCOUNTS[name] ?? `${name}-controller`);
      return FACTORIES[name]!({ ...deps, ...identity }, options) ?? [];
    });
  const started = (async () => {
    if (options.localPath && wanted.includes("persistentvolume-binder")) await ensureLocalPathClass(deps);
    await Promise.all(controllers.map((controller) => controller.start()));
  })();
  started.catch(() => {});
  return {
    started,
    get idle() {
      return controllers.every(({ idle }) => idle);
    },
    async [Symbol.asyncDispose]() {
      for (const controller of controllers.toReversed()) await controller[Symbol.asyncDispose]();
    },
  };
}
