import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { resources } from "#kinds";
import { reconcilePolicy } from "../../src/cluster/bootstrap-policy.ts";
import {
  type AccessPlane,
  binding,
  clusterRole,
  MASTER,
  role,
  startAccessPlane,
  userNamed,
} from "./plane.test-support.ts";

let access: AccessPlane;
before(async () => {
  access = await startAccessPlane();
  const { admin } = access;
  await admin.create(
    resources.roles,
    role("default", "reader", {
      apiGroups: [""],
      resources: ["pods"],
      resourceNames: ["p1"],
      verbs: ["get", "list", "watch"],
    }),
  );
  await admin.create(
    resources.roleBindings,
    binding("RoleBinding", { name: "a", namespace: "default" }, "Role/reader", "User/alice"),
  );
  await admin.create(
    resources.clusterRoles,
    clusterRole("maker", {
      apiGroups: ["rbac.authorization.k8s.io"],
      resources: ["*"],
      verbs: ["get", "create", "update", "delete"],
    }),
  );
  await admin.create(
    resources.clusterRoleBindings,
    binding("ClusterRoleBinding", { name: "maker" }, "ClusterRole/maker", "User/mk"),
  );
});
after(() => access[Symbol.asyncDispose]());

test("what is not allowed is refused in the original's words", async () => {
  const { as, refusal } = access;
  const dave = as("dave");
  const cases: [Promise<unknown>, string][] = [
    [
      dave.list(resources.pods, { namespace: "default" }),
      'pods is forbidden: User "dave" cannot list resource "pods" in API group "" in the namespace "default"',
    ],
    [
      dave.list(resources.nodes),
      'nodes is forbidden: User "dave" cannot list resource "nodes" in API group "" at the cluster scope',
    ],
    [
      dave.get(resources.deployments, "d", { namespace: "x" }),
      'deployments.apps "d" is forbidden: User "dave" cannot get resource "deployments" in API group "apps" in the namespace "x"',
    ],
    [dave.request({ method: "GET", path: "/metrics" }), 'forbidden: User "dave" cannot get path "/metrics"'],
    [
      dave.request({ method: "GET", path: "/apis/foo/v1/bars" }),
      'bars.foo is forbidden: User "dave" cannot list resource "bars" in API group "foo" at the cluster scope',
    ],
    [
      dave.request({ method: "GET", path: "/api/v1/namespaces/x/pods/p/log" }),
      'pods "p" is forbidden: User "dave" cannot get resource "pods/log" in API group "" in the namespace "x"',
    ],
    [dave.request({ method: "GET", path: "/api" }), "allowed"],
    [
      as({ username: "system:anonymous", groups: ["system:unauthenticated"] }).request({ method: "GET", path: "/api" }),
      'forbidden: User "system:anonymous" cannot get path "/api"',
    ],
    [
      as({ username: "system:anonymous", groups: ["system:unauthenticated"] }).request({
        method: "GET",
        path: "/version",
      }),
      "allowed",
    ],
    [
      as('we"ird<x>').list(resources.nodes),
      'nodes is forbidden: User "we\\"ird&lt;x&gt;" cannot list resource "nodes" in API group "" at the cluster scope',
    ],
  ];
  for (const [call, expected] of cases) assert.equal(await refusal(call), expected);
});

test("names limit a rule, for lists by the field selector", async () => {
  const { as, refusal } = access;
  const alice = as("alice");
  assert.equal(await refusal(alice.get(resources.pods, "p1", { namespace: "default" })), 'pods "p1" not found');
  assert.match(await refusal(alice.get(resources.pods, "p2", { namespace: "default" })), /^pods "p2" is forbidden/);
  assert.equal(
    await refusal(alice.list(resources.pods, { namespace: "default", fieldSelector: "metadata.name=p1" })),
    "allowed",
  );
  assert.match(await refusal(alice.list(resources.pods, { namespace: "default" })), /^pods is forbidden/);
});

test("a binding works at once, and no more once it is gone; one without its role says so", async () => {
  const { admin, as, refusal } = access;
  const call = () => refusal(as(userNamed("bob", "ops")).list(resources.nodes));
  const denied = 'nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the cluster scope';
  assert.equal(await call(), denied);
  await admin.create(
    resources.clusterRoleBindings,
    binding("ClusterRoleBinding", { name: "b" }, "ClusterRole/nodes", "Group/ops"),
  );
  assert.equal(await call(), `${denied}: RBAC: clusterrole.rbac.authorization.k8s.io "nodes" not found`);
  await admin.create(
    resources.clusterRoles,
    clusterRole("nodes", { apiGroups: [""], resources: ["nodes"], verbs: ["list"] }),
  );
  assert.equal(await call(), "allowed");
  await admin.delete(resources.clusterRoleBindings, "b");
  assert.equal(await call(), denied);
});

test("nobody gives rights that they lack", async () => {
  const { admin, as, refusal } = access;
  const mk = as("mk");
  const lacking =
    'user "mk" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n';
  const pods = { apiGroups: [""], resources: ["pods", "secrets"], verbs: ["get", "list"] };
  assert.equal(
    await refusal(mk.create(resources.roles, role("default", "r", pods))),
    `roles.rbac.authorization.k8s.io "r" is forbidden: ${lacking}{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}\n{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}`,
  );
  assert.equal(
    await refusal(mk.create(resources.clusterRoles, clusterRole("c", { nonResourceURLs: ["/foo"], verbs: ["get"] }))),
    `clusterroles.rbac.authorization.k8s.io "c" is forbidden: ${lacking}{NonResourceURLs:["/foo"], Verbs:["get"]}`,
  );
  assert.equal(
    await refusal(
      mk.create(
        resources.roleBindings,
        binding("RoleBinding", { name: "rb", namespace: "default" }, "Role/reader", "User/zed"),
      ),
    ),
    `rolebindings.rbac.authorization.k8s.io "rb" is forbidden: ${lacking}{APIGroups:[""], Resources:["pods"], ResourceNames:["p1"], Verbs:["get" "list" "watch"]}`,
  );
  assert.equal(
    await refusal(
      mk.create(
        resources.roleBindings,
        binding("RoleBinding", { name: "rb", namespace: "default" }, "Role/nope", "User/zed"),
      ),
    ),
    'rolebindings.rbac.authorization.k8s.io "nope" not found',
  );
  // what mk has itself
  assert.equal(
    await refusal(
      mk.create(
        resources.clusterRoleBindings,
        binding("ClusterRoleBinding", { name: "ok" }, "ClusterRole/maker", "User/zed"),
      ),
    ),
    "allowed",
  );
  const aggregated = {
    ...(clusterRole("agg") as object),
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: "b" } }] },
  };
  assert.equal(
    await refusal(mk.create(resources.clusterRoles, aggregated as never)),
    'clusterroles.rbac.authorization.k8s.io "agg" is forbidden: must have cluster-admin privileges to use the aggregationRule',
  );
  // the verb `escalate` lifts it
  await admin.create(
    resources.clusterRoles,
    clusterRole("escalator", {
      apiGroups: ["rbac.authorization.k8s.io"],
      resources: ["roles"],
      verbs: ["create", "escalate"],
    }),
  );
  await admin.create(
    resources.clusterRoleBindings,
    binding("ClusterRoleBinding", { name: "esc" }, "ClusterRole/escalator", "User/eve"),
  );
  assert.equal(await refusal(as("eve").create(resources.roles, role("default", "r2", pods))), "allowed");
});

test("roles and bindings are validated; what a binding refers to is fixed", async () => {
  const { admin, refusal } = access;
  assert.equal(
    await refusal(
      admin.create(resources.roles, role("default", "bad", { verbs: [] }, { verbs: ["get"], nonResourceURLs: ["/x"] })),
    ),
    'Role.rbac.authorization.k8s.io "bad" is invalid: [rules[0].verbs: Required value: verbs must contain at least one value, rules[0].apiGroups: Required value: resource rules must supply at least one api group, rules[0].resources: Required value: resource rules must supply at least one resource, rules[1].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs]',
  );
  assert.equal(
    await refusal(
      admin.create(
        resources.clusterRoleBindings,
        binding("ClusterRoleBinding", { name: "bad" }, "Role/a", "ServiceAccount//x"),
      ),
    ),
    'ClusterRoleBinding.rbac.authorization.k8s.io "bad" is invalid: [roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole", subjects[0].namespace: Required value]',
  );
  const patch = { type: "merge", body: { roleRef: { name: "other" } } } as const;
  assert.equal(
    await refusal(admin.patch(resources.roleBindings, "a", patch, { namespace: "default" })),
    'RoleBinding.rbac.authorization.k8s.io "a" is invalid: roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"other"}: cannot change roleRef',
  );
});

test("a start gives back what bootstrap roles and bindings lack, keeps what was added, and respects autoupdate", async () => {
  const { admin, plane } = access;
  const loopback = plane.clientAs(MASTER, "kube-apiserver");
  const extra = { apiGroups: ["x"], resources: ["y"], verbs: ["get"] };
  const merge = (body: object) => ({ type: "merge", body }) as const;
  await admin.patch(resources.clusterRoles, "system:basic-user", merge({ rules: [extra] }));
  await admin.patch(resources.clusterRoleBindings, "system:discovery", merge({ subjects: [] }));
  const off = { metadata: { annotations: { "rbac.authorization.kubernetes.io/autoupdate": "false" } } };
  await admin.patch(resources.clusterRoles, "system:discovery", merge({ ...off, rules: [extra] }));
  await reconcilePolicy(loopback, plane.reader);
  const basic = await admin.get(resources.clusterRoles, "system:basic-user");
  assert.deepEqual(basic.rules?.[0], extra);
  assert.equal(basic.rules?.length, 4);
  const discovery = await admin.get(resources.clusterRoleBindings, "system:discovery");
  assert.deepEqual(discovery.subjects, [
    { apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: "system:authenticated" },
  ]);
  assert.deepEqual((await admin.get(resources.clusterRoles, "system:discovery")).rules, [extra]);
  const before = plane.reader.get(resources.clusterRoles, undefined, "system:basic-user")?.metadata.resourceVersion;
  await reconcilePolicy(loopback, plane.reader);
  assert.equal(
    plane.reader.get(resources.clusterRoles, undefined, "system:basic-user")?.metadata.resourceVersion,
    before,
  );
});
