import type { DeepReadonly } from "#base";
import type { Client } from "#client";
import { type ClusterTrustBundleProjection, type ApiObject, isStatus, type Resource } from "#kinds";

/** The cluster's trust anchors, for projected volumes. */
export interface TrustBundles {
  /**
   * Certificates (PEM) of one bundle, or of all bundles of a signer that have the labels; each certificate once.
   *
   * @throws Error when there are none and the projection is not optional
   */
  anchors(projection: DeepReadonly<ClusterTrustBundleProjection>): Promise<string>;
}

interface TrustBundle extends ApiObject {
  spec: { signerName?: string; trustBundle: string };
}

const BUNDLES: Resource<TrustBundle> = {
  group: "certificates.k8s.io",
  version: "v1beta1",
  resource: "clustertrustbundles",
  kind: "ClusterTrustBundle",
  namespaced: false,
};

export function createTrustBundles(client: Client): TrustBundles {
  return {
    async anchors(projection) {
      const bundles =
        projection.name === undefined ? await ofSigner(client, projection) : await named(client, projection);
      const blocks = new Set(bundles.flatMap((bundle) => bundle.spec.trustBundle.match(CERTIFICATE) ?? []));
      // Sorted, so that the order of bundles makes no change.
      return [...blocks]
        .sort()
        .map((block) => `${block.trim()}\n`)
        .join("");
    },
  };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

async function named(
  client: Client,
  { name = "", optional }: DeepReadonly<ClusterTrustBundleProjection>,
): Promise<readonly DeepReadonly<TrustBundle>[]> {
  try {
    return [await client.get(BUNDLES, name)];
  } catch (error) {
    if (optional && isStatus(error, "NotFound")) return [];
    throw error;
  }
}

async function ofSigner(
  client: Client,
  { signerName, labelSelector, optional }: DeepReadonly<ClusterTrustBundleProjection>,
): Promise<readonly DeepReadonly<TrustBundle>[]> {
  if (!signerName) throw new Error("ClusterTrustBundle projection requires either name or signerName to be set");
  // An absent selector selects nothing, an empty one everything.
  if (!labelSelector) return none(signerName, optional);
  const selector = selectorText(labelSelector);
  const list = await client.list(BUNDLES, selector ? { labelSelector: selector } : {});
  const found = list.items.filter((bundle) => bundle.spec.signerName === signerName);
  return found.length > 0 ? found : none(signerName, optional);
}

function none(signerName: string, optional: boolean | undefined): [] {
  if (!optional)
    throw new Error(`combination of signerName "${signerName}" and labelSelector matched zero ClusterTrustBundles`);
  return [];
}

function selectorText(selector: DeepReadonly<NonNullable<ClusterTrustBundleProjection["labelSelector"]>>): string {
  const equal = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const expressions = (selector.matchExpressions ?? []).map(({ key, operator, values = [] }) => {
    if (operator === "Exists") return key;
    if (operator === "DoesNotExist") return `!${key}`;
    return `${key} ${operator === "In" ? "in" : "notin"} (${values.join(",")})`;
  });
  return [...equal, ...expressions].join(",");
}
