import type { Random } from "#base";
import type { ApiObject, KindInfo, Status } from "#kinds";
import type { AdmissionAttributes } from "../../ports.ts";
import { type GroupVersionKind, kindOfCall, type VersionedCall, versionedCall } from "../match/versioned.ts";

/** admission.k8s.io AdmissionRequest. */
export interface AdmissionRequest {
  readonly uid: string;
  readonly kind: GroupVersionKind;
  readonly resource: { readonly group: string; readonly version: string; readonly resource: string };
  readonly subResource?: string;
  readonly requestKind: GroupVersionKind;
  readonly requestResource: { readonly group: string; readonly version: string; readonly resource: string };
  readonly requestSubResource?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly operation: string;
  readonly userInfo: object;
  readonly object: ApiObject | null;
  readonly oldObject: ApiObject | null;
  readonly dryRun: boolean;
  readonly options: object | null;
}

/** What a webhook has decided. */
export interface Verdict {
  readonly allowed: boolean;
  readonly status: Status | undefined;
  readonly warnings: readonly string[];
  /** Operations of a JSON patch, serialized; mutating webhooks only. */
  readonly patch: string | undefined;
}

const resourceOf = ({ group, version, resource }: KindInfo) => ({ group, version, resource });

/** @param seen the version of the resource that whoever reviews asked for */
export function admissionRequest(
  attributes: AdmissionAttributes,
  seen: KindInfo,
  uid: string,
  view: VersionedCall = versionedCall(attributes, seen),
): AdmissionRequest {
  const { kind, subresource, name, user, operation } = attributes;
  const namespace = kind.group === "" && kind.resource === "namespaces" ? name : attributes.namespace;
  return {
    uid,
    kind: view.kind,
    resource: resourceOf(seen),
    ...(subresource ? { subResource: subresource } : {}),
    requestKind: kindOfCall(kind, subresource),
    requestResource: resourceOf(kind),
    ...(subresource ? { requestSubResource: subresource } : {}),
    ...(name ? { name } : {}),
    ...(namespace ? { namespace } : {}),
    operation,
    userInfo: {
      username: user.username,
      ...(user.uid ? { uid: user.uid } : {}),
      groups: user.groups,
      ...(user.extra ? { extra: user.extra } : {}),
    },
    object: view.object ?? null,
    oldObject: view.old ?? null,
    dryRun: attributes.dryRun,
    options: operation === "CONNECT" ? null : attributes.options,
  };
}

const VERSIONS = ["v1", "v1beta1"];

/** An AdmissionReview in the first version that both sides know. @throws Error when there is none */
export function admissionReview(
  attributes: AdmissionAttributes,
  seen: KindInfo,
  versions: readonly string[],
  random: Random,
): { apiVersion: string; uid: string; body: string } {
  const version = versions.find((one) => VERSIONS.includes(one));
  if (!version)
    throw new Error(
      "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)",
    );
  const uid = random.uuid();
  const apiVersion = `admission.k8s.io/${version}`;
  const request = admissionRequest(attributes, seen, uid);
  return { apiVersion, uid, body: JSON.stringify({ kind: "AdmissionReview", apiVersion, request }) };
}

interface Response {
  readonly uid?: string;
  readonly allowed?: boolean;
  readonly status?: Status;
  readonly patch?: string;
  readonly patchType?: string;
  readonly warnings?: readonly string[];
}

const versionOf = (apiVersion: string) => apiVersion.split("/").at(-1);

/** The answer is none to what was asked: as if it had not come. */
export class CallError extends Error {
  override readonly name = "CallError";
}

/** Reads the answer to a review. @throws Error that says what is wrong with it */
export function verdictOf(answer: unknown, asked: { apiVersion: string; uid: string }, mutating: boolean): Verdict {
  const { apiVersion, kind, response } = answer as { apiVersion?: string; kind?: string; response?: Response };
  if (kind && apiVersion && apiVersion !== asked.apiVersion)
    throw new CallError(
      `converting (${versionOf(apiVersion)}.${kind}) to (${versionOf(asked.apiVersion)}.AdmissionReview): unknown conversion`,
    );
  if (!response) throw new Error("webhook response was absent");
  if (asked.apiVersion.endsWith("/v1")) {
    if ((response.uid ?? "") !== asked.uid)
      throw new Error(`expected response.uid=${JSON.stringify(asked.uid)}, got ${JSON.stringify(response.uid ?? "")}`);
    if (apiVersion !== asked.apiVersion || kind !== "AdmissionReview")
      throw new Error(
        `expected webhook response of ${asked.apiVersion}, Kind=AdmissionReview, got ${apiVersion ?? ""}, Kind=${kind ?? ""}`,
      );
    checkPatch(response, mutating);
  }
  return {
    allowed: response.allowed ?? false,
    status: response.status,
    warnings: response.warnings ?? [],
    patch: mutating && response.patch ? Buffer.from(response.patch, "base64").toString("utf8") : undefined,
  };
}

function checkPatch({ patch, patchType }: Response, mutating: boolean): void {
  if (!mutating) {
    if (patch) throw new Error("validating webhook may not return response.patch");
    if (patchType !== undefined) throw new Error("validating webhook may not return response.patchType");
    return;
  }
  if (patch && patchType === undefined) throw new Error("webhook returned response.patch but not response.patchType");
  if (!patch && patchType !== undefined) throw new Error("webhook returned response.patchType but not response.patch");
  if (patchType === "") throw new Error('webhook returned invalid response.patchType of ""');
}
