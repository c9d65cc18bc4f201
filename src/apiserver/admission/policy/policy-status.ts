import { deepClone, type Logger, messageOf } from "#base";
import { type ApiObject, resources, type Scheme, type ValidatingAdmissionPolicy } from "#kinds";
import { isStoreError, type Store } from "#store";
import type { Reader } from "../../ports.ts";
import { keyOf } from "../../registry/keys.ts";
import { toStored } from "../../registry/view.ts";
import { typeWarnings } from "./type-checking.ts";

/** Keeps `status.typeChecking` and `status.observedGeneration` of validating policies. */
export function keepPolicyStatus(deps: { store: Store; scheme: Scheme; reader: Reader; logger: Logger }): Disposable {
  const { group, version, resource } = resources.validatingAdmissionPolicies;
  const kind = deps.scheme.byResource(group, version, resource)!;

  async function update(policy: ValidatingAdmissionPolicy): Promise<void> {
    const { name, generation, resourceVersion } = policy.metadata;
    if (generation === undefined || policy.status?.observedGeneration === generation) return;
    const warnings = typeWarnings(policy.spec ?? {}, deps.scheme);
    const changed = deepClone<ValidatingAdmissionPolicy>(policy);
    changed.status = {
      ...changed.status,
      observedGeneration: generation,
      typeChecking: warnings.length > 0 ? { expressionWarnings: warnings } : {},
    };
    const key = keyOf(kind, undefined, name!);
    try {
      await deps.store.update(key, toStored(kind, changed as unknown as ApiObject), Number(resourceVersion));
    } catch (error) {
      // somebody was faster: that change comes here too
      if (!isStoreError(error, "conflict") && !isStoreError(error, "not-found")) throw error;
    }
  }

  const attempt = (policy: ValidatingAdmissionPolicy) =>
    void update(policy).catch((error: unknown) =>
      deps.logger.warn("the status of a policy could not be written", {
        policy: policy.metadata.name ?? "",
        error: messageOf(error),
      }),
    );
  const changes = deps.reader.onChange(resources.validatingAdmissionPolicies as never, (policy, deleted) => {
    if (!deleted) attempt(policy as unknown as ValidatingAdmissionPolicy);
  });
  for (const policy of deps.reader.list(resources.validatingAdmissionPolicies)) attempt(policy);
  return changes;
}
