import type { Random } from "#base";
import {
  type ApiObject,
  type CustomResourceDefinition,
  internalError,
  isStatus,
  type KindInfo,
  type Status,
  StatusError,
} from "#kinds";
import type { PostReview } from "../admission/webhook/post.ts";

/** A conversion may take that long, seconds. */
const TIMEOUT = 30;

/** Gives what converts the objects of a definition between its versions; undefined where only their `apiVersion` changes. */
export interface Conversions {
  converterOf(definition: CustomResourceDefinition): KindInfo["convert"] | undefined;
}

/** Conversion by webhooks. @see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion */
export function createConversions({ post, random }: { post: PostReview; random: Random }): Conversions {
  return {
    converterOf({ spec }) {
      const { conversion } = spec;
      const config = conversion?.strategy === "Webhook" ? conversion.webhook?.clientConfig : undefined;
      if (!config) return undefined;
      const version = conversion?.webhook?.conversionReviewVersions?.find((one) => one === "v1" || one === "v1beta1");
      const reviewVersion = `apiextensions.k8s.io/${version ?? "v1"}`;
      return async (objects, apiVersion) => {
        const open = objects.filter((object) => object.apiVersion !== apiVersion);
        if (open.length === 0) return [...objects];
        const uid = random.uuid();
        const review = {
          kind: "ConversionReview",
          apiVersion: reviewVersion,
          request: { uid, desiredAPIVersion: apiVersion, objects: open },
        };
        const fail = (why: string) => {
          const { apiVersion: from, kind } = open[0]!;
          return internalError(new Error(`conversion webhook for ${from}, Kind=${kind} failed: ${why}`));
        };
        try {
          const answer = await post(config as Parameters<PostReview>[0], JSON.stringify(review), TIMEOUT);
          const converted = convertedObjects(answer, { uid, reviewVersion, apiVersion, open });
          return objects.map((object) => (object.apiVersion === apiVersion ? object : converted.shift()!));
        } catch (error) {
          if (isStatus(error)) throw error;
          throw fail((error as Error).message);
        }
      };
    },
  };
}

interface Asked {
  readonly uid: string;
  readonly reviewVersion: string;
  readonly apiVersion: string;
  readonly open: readonly ApiObject[];
}

interface Answer {
  apiVersion?: string;
  kind?: string;
  response?: { uid?: string; result?: Partial<Status>; convertedObjects?: ApiObject[] };
}

/** @throws Error for an answer that is none, StatusError for a refusal */
function convertedObjects(answer: unknown, { uid, reviewVersion, apiVersion, open }: Asked): ApiObject[] {
  const { kind, apiVersion: version, response } = answer as Answer;
  if (kind !== "ConversionReview" || version !== reviewVersion)
    throw new Error(
      `expected webhook response of ${reviewVersion}, Kind=ConversionReview, got ${version}, Kind=${kind}`,
    );
  if (!response) throw new Error("no response provided");
  if (response.uid !== uid)
    throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(response.uid)}`);
  if (response.result?.status !== "Success") {
    const { message, reason, code } = response.result ?? {};
    if (!message) throw new Error(`response.result.status was '${response.result?.status ?? ""}', not 'Success'`);
    throw new StatusError({
      apiVersion: "v1",
      kind: "Status",
      metadata: {},
      status: "Failure",
      message: `conversion webhook for ${open[0]!.apiVersion}, Kind=${open[0]!.kind} failed: ${message}`,
      reason: reason ?? "InternalError",
      code: code ?? 500,
    });
  }
  const objects = response.convertedObjects ?? [];
  if (objects.length !== open.length)
    throw new Error(`webhook returned ${objects.length} objects, expected ${open.length}`);
  return objects.map((object, i) => checked(object, open[i]!, apiVersion, i));
}

/** A conversion may change labels and annotations and nothing else of the metadata. */
function checked(object: ApiObject, source: ApiObject, apiVersion: string, i: number): ApiObject {
  if (object.apiVersion !== apiVersion)
    throw new Error(
      `webhook returned invalid converted object at index ${i}: invalid apiVersion, must be ${apiVersion}`,
    );
  if (object.kind !== source.kind)
    throw new Error(`webhook returned invalid converted object at index ${i}: invalid kind, must be ${source.kind}`);
  const { labels, annotations } = object.metadata ?? {};
  const { labels: _labels, annotations: _annotations, ...metadata } = source.metadata;
  return {
    ...object,
    metadata: { ...metadata, ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) },
  };
}
