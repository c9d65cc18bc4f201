import { type DeepReadonly, deepClone } from "#base";
import { type ApiObject, type ResourceQuota, resources, type Scheme, type Usage } from "#kinds";
import { isStoreError, type Store } from "#store";
import { keyOf } from "./keys.ts";
import { toStored } from "./view.ts";

/** Writes what a quota has used, on exactly the version that was read; false when there is another by now. */
export function createQuotaCharges({ store, scheme }: { store: Store; scheme: Scheme }) {
  const { group, version, resource } = resources.resourceQuotas;
  const kind = scheme.byResource(group, version, resource)!;
  return async (quota: DeepReadonly<ResourceQuota>, used: Usage): Promise<boolean> => {
    const { name, namespace, resourceVersion } = quota.metadata;
    const charged = deepClone<ResourceQuota>(quota as ResourceQuota);
    charged.status = { ...charged.status, used };
    const key = keyOf(kind, namespace, name!);
    try {
      await store.update(key, toStored(kind, charged as unknown as ApiObject), Number(resourceVersion));
      return true;
    } catch (error) {
      if (isStoreError(error, "conflict") || isStoreError(error, "not-found")) return false;
      throw error;
    }
  };
}
