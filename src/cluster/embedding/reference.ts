import { CodedError } from "#base";
import type { Discovery, ServedResource } from "#client";

/**
 * An object, as a person names it: `deployment/web`, `deploy/web`, `deployments.apps/web`, with the namespace beside it; or the
 * object itself, or any part of it that has kind and name.
 */
export type ObjectRef =
  | string
  | { readonly kind: string; readonly name: string; readonly namespace?: string; readonly apiVersion?: string }
  | {
      readonly kind?: string;
      readonly apiVersion?: string;
      readonly metadata: { readonly name?: string | undefined; readonly namespace?: string | undefined };
    };

export interface Located {
  readonly resource: ServedResource;
  readonly name: string;
  /** Undefined for what has no namespace. */
  readonly namespace: string | undefined;
}

/** @throws CodedError `invalid-reference`, StatusError 404 for a kind that nobody serves */
export async function locate(discovery: Discovery, ref: ObjectRef, namespace: string): Promise<Located> {
  const { kind, name, apiVersion, own } = partsOf(ref);
  if (!kind || !name)
    throw new CodedError(
      "invalid-reference",
      `"${typeof ref === "string" ? ref : JSON.stringify(ref)}" names no object`,
      {
        hint: 'Give it as "kind/name", for example "deployment/web".',
      },
    );
  const resource = apiVersion ? await discovery.ofKind(apiVersion, kind) : await discovery.named(kind);
  return { resource, name, namespace: resource.namespaced ? (own ?? namespace) : undefined };
}

function partsOf(ref: ObjectRef): { kind?: string; name?: string; apiVersion?: string; own?: string } {
  if (typeof ref === "string") {
    const [kind = "", name = "", ...rest] = ref.split("/");
    return rest.length > 0 ? {} : { kind, name };
  }
  const { kind, apiVersion } = ref;
  const { name, namespace } = "metadata" in ref ? ref.metadata : ref;
  return {
    ...(kind ? { kind } : {}),
    ...(name ? { name } : {}),
    ...(apiVersion ? { apiVersion } : {}),
    ...(namespace ? { own: namespace } : {}),
  };
}
