import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { resources } from "#kinds";
import { type AccessPlane, binding, nodeNamed, startAccessPlane, userNamed } from "./plane.test-support.ts";

let access: AccessPlane;
before(async () => {
  access = await startAccessPlane();
  await access.admin.create(
    resources.roleBindings,
    binding(
      "RoleBinding",
      { name: "rb", namespace: "default" },
      "ClusterRole/system:node-problem-detector",
      "User/erin",
      "ServiceAccount/default/default",
    ),
  );
});
after(() => access[Symbol.asyncDispose]());

const post = (path: string, object: object, user = "admin") =>
  (user === "admin" ? access.admin : access.as(user)).request({
    method: "POST",
    path: `/apis/${path}`,
    body: object,
  }) as Promise<never>;
const REVIEW = "authorization.k8s.io/v1/subjectaccessreviews";
const ask = (spec: object, path = REVIEW) => post(path, { spec });

test("SubjectAccessReview answers for anybody, and says by which binding", async () => {
  const events = { verb: "create", resource: "events", namespace: "default" };
  const byBinding = 'RBAC: allowed by RoleBinding "rb/default" of ClusterRole "system:node-problem-detector" to';
  const cases: [object, object][] = [
    [
      { user: "erin", resourceAttributes: events },
      { allowed: true, reason: `${byBinding} User "erin"` },
    ],
    [
      { user: "system:serviceaccount:default:default", resourceAttributes: events },
      { allowed: true, reason: `${byBinding} ServiceAccount "default/default"` },
    ],
    [{ user: "erin", resourceAttributes: { ...events, namespace: "x" } }, { allowed: false }],
    [{ user: "x", groups: ["system:masters"], resourceAttributes: events }, { allowed: true }],
    [
      { user: "x", groups: ["system:unauthenticated"], nonResourceAttributes: { verb: "get", path: "/version" } },
      {
        allowed: true,
        reason:
          'RBAC: allowed by ClusterRoleBinding "system:public-info-viewer" of ClusterRole "system:public-info-viewer" to Group "system:unauthenticated"',
      },
    ],
    [
      {
        user: "system:node:n",
        groups: ["system:nodes"],
        resourceAttributes: { verb: "get", resource: "secrets", namespace: "default", name: "z" },
      },
      { allowed: false, reason: "no relationship found between node 'n' and this object" },
    ],
  ];
  for (const [spec, status] of cases) assert.deepEqual(((await ask(spec)) as { status: object }).status, status);
});

test("reviews that ask nothing, or too much, are refused", async () => {
  const { refusal } = access;
  const invalid = '.authorization.k8s.io "" is invalid: ';
  const one =
    "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified";
  assert.equal(await refusal(ask({ user: "x" })), invalid + one);
  assert.equal(
    await refusal(ask({})),
    `${invalid}[${one}, spec.user: Invalid value: "": at least one of user or group must be specified]`,
  );
  assert.equal(
    await refusal(ask({ user: "x", resourceAttributes: { verb: "get" }, nonResourceAttributes: { verb: "get" } })),
    `${invalid}spec.nonResourceAttributes: Invalid value: {"Path":"","Verb":"get"}: cannot be specified in combination with resourceAttributes`,
  );
  assert.equal(
    await refusal(
      ask(
        { user: "x", resourceAttributes: { verb: "get" } },
        "authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
      ),
    ),
    `${invalid}spec.resourceAttributes.namespace: Invalid value: "": must match metadata.namespace`,
  );
});

test("SelfSubjectRulesReview lists what the caller may do", async () => {
  const path = "authorization.k8s.io/v1/selfsubjectrulesreviews";
  const { status } = (await post(path, { spec: { namespace: "default" } }, "erin")) as {
    status: { resourceRules: { resources: string[] }[]; incomplete: boolean };
  };
  assert.deepEqual(
    status.resourceRules.map(({ resources }) => resources.join()),
    ["selfsubjectaccessreviews,selfsubjectrulesreviews", "selfsubjectreviews", "nodes", "nodes/status", "events"],
  );
  assert.equal(status.incomplete, false);
  assert.equal(await access.refusal(post(path, { spec: {} }, "erin")), "no namespace on request");
  const node = (await access
    .as(nodeNamed("n"))
    .request({ method: "POST", path: `/apis/${path}`, body: { spec: { namespace: "x" } } })) as { status: object };
  assert.partialDeepStrictEqual(node.status, {
    incomplete: true,
    evaluationError: "node authorizer does not support user rule resolution",
  });
});

test("SelfSubjectReview and TokenReview tell who it is", async () => {
  const self = (await access
    .as(userNamed("erin", "devs"))
    .request({ method: "POST", path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", body: {} })) as never;
  assert.deepEqual((self as { status: object }).status, {
    userInfo: { username: "erin", groups: ["devs", "system:authenticated"] },
  });
  const { status } = (await access.admin.request({
    method: "POST",
    path: "/api/v1/namespaces/default/serviceaccounts/default/token",
    body: {},
  })) as { status: { token: string } };
  const review = async (spec: object) =>
    ((await post("authentication.k8s.io/v1/tokenreviews", { spec })) as { status: object }).status;
  const own = "https://kubernetes.default.svc.cluster.local";
  assert.partialDeepStrictEqual(await review({ token: status.token }), {
    authenticated: true,
    user: {
      username: "system:serviceaccount:default:default",
      groups: ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
    },
    audiences: [own],
  });
  assert.deepEqual(await review({ token: "abc" }), { user: {}, error: "invalid bearer token" });
  assert.deepEqual(await review({ token: status.token, audiences: ["foo"] }), {
    user: {},
    error: `[invalid bearer token, token audiences ["${own}"] is invalid for the target audiences ["foo"]]`,
  });
  await access.admin.delete(resources.serviceAccounts, "default", { namespace: "default" });
  assert.partialDeepStrictEqual(await review({ token: status.token }), { user: {} });
});

test("how tokens are checked is told to ServiceAccounts", async () => {
  const account = access.as(userNamed("system:serviceaccount:a:b", "system:serviceaccounts"));
  const get = (path: string) => account.request({ method: "GET", path }) as Promise<Record<string, never>>;
  assert.deepEqual(await get("/.well-known/openid-configuration"), {
    issuer: "https://kubernetes.default.svc.cluster.local",
    jwks_uri: "https://127.0.0.1:6443/openid/v1/jwks",
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["ES256"],
  });
  const { keys } = (await get("/openid/v1/jwks")) as unknown as { keys: object[] };
  assert.partialDeepStrictEqual(keys, [{ use: "sig", alg: "ES256", kty: "EC", crv: "P-256" }]);
  assert.match(
    await access.refusal(access.as("dave").request({ method: "GET", path: "/openid/v1/jwks" })),
    /cannot get path/,
  );
});
