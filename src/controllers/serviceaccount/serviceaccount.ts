import type { DeepReadonly } from "#base";
import { type ConfigMap, isStatus, type Namespace, type ServiceAccount, resources } from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { copyOf, fromCache, isNamespaceTerminating } from "../runtime/objects.ts";

const CA_CONFIG_MAP = "kube-root-ca.crt";
const DESCRIPTION =
  "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/** Creates with no regard for one that is there already, and none for a namespace that goes away. */
async function ensure(create: Promise<unknown>): Promise<void> {
  try {
    await create;
  } catch (error) {
    if (!isStatus(error, "AlreadyExists", "NotFound") && !isNamespaceTerminating(error)) throw error;
  }
}

/** Every namespace has a ServiceAccount `default`. https://kubernetes.io/docs/concepts/security/service-accounts/ */
export function createServiceAccountController(deps: ControllerDeps): Controller {
  const accounts = deps.informers.for(resources.serviceAccounts);
  const namespaces = deps.informers.for(resources.namespaces);
  return createController(deps, {
    name: "serviceaccount",
    watch({ on, enqueue }) {
      on(namespaces, {
        add: ({ metadata }) => enqueue(metadata.name),
        update: ({ metadata }) => enqueue(metadata.name),
      });
      on(accounts, { delete: ({ metadata }: DeepReadonly<ServiceAccount>) => enqueue(metadata.namespace ?? "") });
    },
    async reconcile(namespace) {
      if (!isActive(fromCache(namespaces, namespace)) || accounts.get(namespace, "default")) return;
      const account: ServiceAccount = {
        apiVersion: "v1",
        kind: "ServiceAccount",
        metadata: { name: "default", namespace },
      };
      await ensure(deps.client.create(resources.serviceAccounts, account));
    },
  });
}

/** Every namespace has the cluster's CA in a ConfigMap, for pods to know the API server by. */
export function createRootCAPublisher(deps: ControllerDeps, options: { rootCA: string }): Controller {
  const configMaps = deps.informers.for(resources.configMaps);
  const namespaces = deps.informers.for(resources.namespaces);
  const data = { "ca.crt": options.rootCA };
  return createController(deps, {
    name: "root-ca-certificate-publisher",
    watch({ on, enqueue }) {
      const changed = ({ metadata }: DeepReadonly<ConfigMap>) => {
        if (metadata.name === CA_CONFIG_MAP) enqueue(metadata.namespace ?? "");
      };
      on(namespaces, {
        add: ({ metadata }) => enqueue(metadata.name),
        update: ({ metadata }) => enqueue(metadata.name),
      });
      on(configMaps, { update: changed, delete: changed });
    },
    async reconcile(namespace) {
      if (!isActive(fromCache(namespaces, namespace))) return;
      const found = configMaps.get(namespace, CA_CONFIG_MAP);
      const annotations = { "kubernetes.io/description": DESCRIPTION };
      if (!found) {
        const metadata = { name: CA_CONFIG_MAP, namespace, annotations };
        const configMap: ConfigMap = { apiVersion: "v1", kind: "ConfigMap", metadata, data };
        return ensure(deps.client.create(resources.configMaps, configMap));
      }
      const keys = Object.keys(found.data ?? {});
      if (
        keys.length === 1 &&
        found.data?.["ca.crt"] === options.rootCA &&
        found.metadata.annotations?.["kubernetes.io/description"]
      )
        return;
      const copy = copyOf(resources.configMaps, found);
      const metadata = { ...copy.metadata, annotations: { ...copy.metadata.annotations, ...annotations } };
      await deps.client.update(resources.configMaps, { ...copy, metadata, data });
    },
  });
}

const isActive = (namespace: DeepReadonly<Namespace> | undefined): boolean =>
  namespace !== undefined && !namespace.metadata.deletionTimestamp && namespace.status?.phase !== "Terminating";
