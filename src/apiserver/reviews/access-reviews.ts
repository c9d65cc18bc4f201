import {
  type ApiObject,
  badRequest,
  type FieldError,
  fieldError,
  failure,
  type LocalSubjectAccessReview,
  type NonResourceAttributes,
  type ResourceAttributes,
  type SelfSubjectRulesReview,
  type SubjectAccessReviewSpec,
  type UserInfo,
} from "#kinds";
import { nodeOf, type RbacAuthorizer } from "../authz/mod.ts";
import type { AuthorizationAttributes, Authorizer, VirtualResource } from "../ports.ts";

/**
 * Questions about what somebody may do, answered by the server's own authorizer.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
 */
export function createAccessReviews(deps: {
  authorizer: Authorizer;
  rbac: Pick<RbacAuthorizer, "rulesOf">;
}): ReadonlyMap<string, VirtualResource> {
  const { authorizer, rbac } = deps;
  const answer = async (review: ApiObject, user: UserInfo): Promise<ApiObject> => {
    const { allowed, reason } = await authorizer.authorize(attributesOf(specOf(review), user));
    return { ...review, status: { allowed, ...(reason ? { reason } : {}) } };
  };
  return new Map<string, VirtualResource>([
    [
      "authorization.k8s.io/subjectaccessreviews",
      {
        create(review) {
          const spec = specOf(review);
          check([...specErrors(spec), ...whoErrors(spec), ...metadataErrors(review)]);
          delete (review.metadata as { namespace?: string }).namespace;
          return answer(review, userOf(spec));
        },
      },
    ],
    [
      "authorization.k8s.io/localsubjectaccessreviews",
      {
        create(review, { namespace }) {
          const spec = specOf(review);
          const errors = [...specErrors(spec), ...whoErrors(spec), ...metadataErrors(review)];
          check([...errors, ...localErrors(review as unknown as LocalSubjectAccessReview, namespace)]);
          return answer(review, userOf(spec));
        },
      },
    ],
    [
      "authorization.k8s.io/selfsubjectaccessreviews",
      {
        create(review, { user }) {
          check([...specErrors(specOf(review)), ...metadataErrors(review)]);
          return answer(review, user);
        },
      },
    ],
    [
      "authorization.k8s.io/selfsubjectrulesreviews",
      { create: (review, { user }) => rulesReview(review as unknown as SelfSubjectRulesReview, user, rbac) },
    ],
  ]);
}

const specOf = (review: ApiObject): SubjectAccessReviewSpec => (review.spec ?? {}) as SubjectAccessReviewSpec;

function userOf({ user = "", groups, uid, extra }: SubjectAccessReviewSpec): UserInfo {
  return { username: user, groups: groups ?? [], ...(uid ? { uid } : {}), ...(extra ? { extra } : {}) };
}

function attributesOf(spec: SubjectAccessReviewSpec, user: UserInfo): AuthorizationAttributes {
  const none = { user, group: "", version: "", resource: "", subresource: "", namespace: "", name: "", path: "" };
  const { resourceAttributes: asked, nonResourceAttributes: path } = spec;
  if (!asked) return { ...none, isResourceRequest: false, verb: path?.verb ?? "", path: path?.path ?? "" };
  const fieldSelector = selectorOf(asked);
  return {
    ...none,
    isResourceRequest: true,
    verb: asked.verb ?? "",
    group: asked.group ?? "",
    version: asked.version ?? "",
    resource: asked.resource ?? "",
    subresource: asked.subresource ?? "",
    namespace: asked.namespace ?? "",
    name: asked.name ?? "",
    ...(fieldSelector ? { fieldSelector } : {}),
  };
}

/** Requirements as the selector's text; only those that name one value limit a request. */
function selectorOf({ fieldSelector }: ResourceAttributes): string {
  if (!fieldSelector?.requirements?.length) return fieldSelector?.rawSelector ?? "";
  return fieldSelector.requirements
    .filter(({ operator, values }) => operator === "In" && values?.length === 1)
    .map(({ key, values }) => `${key}=${values![0]!.replace(/[\\,=]/g, "\\$&")}`)
    .join();
}

/** @throws StatusError 422, without a name as these objects have none */
function check(errors: readonly FieldError[]): void {
  if (errors.length === 0) return;
  const texts = errors.map(({ field, message }) => `${field}: ${message}`);
  throw failure(
    422,
    "Invalid",
    `.authorization.k8s.io "" is invalid: ${texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`}`,
    {
      group: "authorization.k8s.io",
      causes: errors.map(({ reason, message, field }) => ({ reason, message, field })),
    },
  );
}

const goPath = ({ path = "", verb = "" }: NonResourceAttributes) => ({ Path: path, Verb: verb });

function specErrors({ resourceAttributes: asked, nonResourceAttributes: path }: SubjectAccessReviewSpec): FieldError[] {
  if (asked && path)
    return [
      fieldError.invalid(
        "spec.nonResourceAttributes",
        goPath(path),
        "cannot be specified in combination with resourceAttributes",
      ),
    ];
  if (!asked && !path)
    return [
      fieldError.invalid(
        "spec.resourceAttributes",
        null,
        "exactly one of nonResourceAttributes or resourceAttributes must be specified",
      ),
    ];
  return [...selectorErrors(asked, "fieldSelector"), ...selectorErrors(asked, "labelSelector")];
}

function selectorErrors(asked: ResourceAttributes | undefined, which: "fieldSelector" | "labelSelector"): FieldError[] {
  const selector = asked?.[which];
  if (!selector?.rawSelector || !selector.requirements?.length) return [];
  const at = `spec.resourceAttributes.${which}.rawSelector`;
  return [fieldError.invalid(at, selector.rawSelector, "may not specified at the same time as requirements")];
}

function whoErrors({ user, groups }: SubjectAccessReviewSpec): FieldError[] {
  if (user || groups?.length) return [];
  return [fieldError.invalid("spec.user", "", "at least one of user or group must be specified")];
}

function metadataErrors({ metadata }: ApiObject): FieldError[] {
  const { namespace: _n, managedFields: _m, ...rest } = metadata as Partial<ApiObject["metadata"]>;
  return Object.keys(rest).length === 0 ? [] : [fieldError.invalid("metadata", rest, "must be empty")];
}

function localErrors({ spec }: LocalSubjectAccessReview, namespace: string): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.resourceAttributes && (spec.resourceAttributes.namespace ?? "") !== namespace)
    errors.push(
      fieldError.invalid(
        "spec.resourceAttributes.namespace",
        spec.resourceAttributes.namespace ?? "",
        "must match metadata.namespace",
      ),
    );
  if (spec.nonResourceAttributes)
    errors.push(
      fieldError.invalid(
        "spec.nonResourceAttributes",
        goPath(spec.nonResourceAttributes),
        "disallowed on this kind of request",
      ),
    );
  return errors;
}

function rulesReview(review: SelfSubjectRulesReview, user: UserInfo, rbac: Pick<RbacAuthorizer, "rulesOf">): ApiObject {
  const namespace = review.spec?.namespace;
  if (!namespace) throw badRequest("no namespace on request");
  const { rules, errors } = rbac.rulesOf(user, namespace);
  const isNode = nodeOf(user) !== undefined;
  const all = [...errors, ...(isNode ? ["node authorizer does not support user rule resolution"] : [])];
  const words = (name: string, list: readonly string[] | null | undefined) =>
    list && list.length > 0 ? { [name]: list } : {};
  return {
    kind: review.kind,
    apiVersion: review.apiVersion,
    metadata: {} as ApiObject["metadata"],
    spec: {},
    status: {
      resourceRules: rules
        .filter(({ resources }) => (resources?.length ?? 0) > 0)
        .map((rule) => ({
          verbs: rule.verbs,
          ...words("apiGroups", rule.apiGroups),
          ...words("resources", rule.resources),
          ...words("resourceNames", rule.resourceNames),
        })),
      nonResourceRules: rules
        .filter(({ nonResourceURLs }) => (nonResourceURLs?.length ?? 0) > 0)
        .map((rule) => ({ verbs: rule.verbs, ...words("nonResourceURLs", rule.nonResourceURLs) })),
      incomplete: isNode,
      ...(all.length > 0 ? { evaluationError: all.length === 1 ? all[0] : `[${all.join(", ")}]` } : {}),
    },
  };
}
