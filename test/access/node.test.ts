import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Pod, resources } from "#kinds";
import { type AccessPlane, nodeNamed, startAccessPlane, userNamed } from "./plane.test-support.ts";

let access: AccessPlane;
let uid = "";
before(async () => {
  access = await startAccessPlane();
  const { admin } = access;
  const pod = (name: string, nodeName: string, secretName: string): Pod =>
    ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace: "default" },
      spec: { nodeName, containers: [{ name: "c", image: "i" }], volumes: [{ name: "s", secret: { secretName } }] },
    }) as Pod;
  for (const name of ["mine", "other"])
    await admin.create(resources.secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace: "default" },
    } as never);
  uid = (await admin.create(resources.pods, pod("mine", "n1", "mine"))).metadata.uid ?? "";
  await admin.create(resources.pods, pod("other", "n2", "other"));
});
after(() => access[Symbol.asyncDispose]());

const at = { namespace: "default" };

test("the agent of a node reads what its pods need", async () => {
  const { as, refusal } = access;
  const node = as(nodeNamed("n1"));
  const cannot = (what: string, of: string, where: string) =>
    `User "system:node:n1" cannot ${what} in API group "${of}" ${where}`;
  const inDefault = 'in the namespace "default"';
  const cases: [Promise<unknown>, string][] = [
    [node.get(resources.secrets, "mine", at), "allowed"],
    [node.list(resources.secrets, { ...at, fieldSelector: "metadata.name=mine" }), "allowed"],
    [
      node.get(resources.secrets, "other", at),
      `secrets "other" is forbidden: ${cannot('get resource "secrets"', "", inDefault)}: no relationship found between node 'n1' and this object`,
    ],
    [
      node.list(resources.secrets, at),
      `secrets is forbidden: ${cannot('list resource "secrets"', "", inDefault)}: No Object name found`,
    ],
    [node.list(resources.pods, { fieldSelector: "spec.nodeName=n1" }), "allowed"],
    [
      node.list(resources.pods, at),
      `pods is forbidden: ${cannot('list resource "pods"', "", inDefault)}: can only list/watch pods with spec.nodeName field selector`,
    ],
    [
      node.get(resources.nodes, "n2"),
      `nodes "n2" is forbidden: ${cannot('get resource "nodes"', "", "at the cluster scope")}: node 'n1' cannot read 'n2', only its own Node object`,
    ],
    [node.list(resources.services), "allowed"],
    [
      node.list(resources.deployments),
      `deployments.apps is forbidden: ${cannot('list resource "deployments"', "apps", "at the cluster scope")}`,
    ],
    [
      node.get(resources.leases, "n2", { namespace: "kube-node-lease" }),
      `leases.coordination.k8s.io "n2" is forbidden: ${cannot('get resource "leases"', "coordination.k8s.io", 'in the namespace "kube-node-lease"')}: can only access node lease with the same name as the requesting node`,
    ],
    [
      as(userNamed("system:node:n1")).get(resources.secrets, "mine", at),
      `secrets "mine" is forbidden: ${cannot('get resource "secrets"', "", inDefault)}`,
    ],
  ];
  for (const [call, expected] of cases) assert.equal(await refusal(call), expected);
});

test("the agent of a node writes only what is its own", async () => {
  const { as, refusal } = access;
  const node = as(nodeNamed("n1"));
  const object = (name: string, labels: object = {}) =>
    ({ apiVersion: "v1", kind: "Node", metadata: { name, labels } }) as never;
  const status = { type: "merge", body: { status: { message: "x" } } } as const;
  const token = (ref?: object) =>
    node.request({
      method: "POST",
      path: "/api/v1/namespaces/default/serviceaccounts/default/token",
      body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: ref ? { boundObjectRef: ref } : {} },
    });
  const steps: [() => Promise<unknown>, string][] = [
    [
      () => node.create(resources.nodes, object("n2")),
      'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"',
    ],
    [
      () =>
        node.create(resources.nodes, object("n1", { "node-restriction.kubernetes.io/a": "b", "foo.k8s.io/x": "y" })),
      'nodes "n1" is forbidden: node "n1" is not allowed to set the following labels: foo.k8s.io/x, node-restriction.kubernetes.io/a',
    ],
    [() => node.create(resources.nodes, object("n1", { "kubernetes.io/os": "linux", mine: "too" })), "allowed"],
    [
      () =>
        node.patch(resources.nodes, "n1", {
          type: "merge",
          body: { spec: { taints: [{ key: "a", effect: "NoSchedule" }] } },
        }),
      'nodes "n1" is forbidden: node "n1" is not allowed to modify taints',
    ],
    [() => node.patch(resources.pods, "mine", status, { ...at, subresource: "status" }), "allowed"],
    [
      () => node.patch(resources.pods, "other", status, { ...at, subresource: "status" }),
      'pods "other" is forbidden: node "n1" can only update pod status for pods with spec.nodeName set to itself',
    ],
    [
      () => node.delete(resources.pods, "other", at),
      'pods "other" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself',
    ],
    [() => token(), 'serviceaccounts "default" is forbidden: node requested token not bound to a pod'],
    [
      () => token({ apiVersion: "v1", kind: "Pod", name: "mine" }),
      'serviceaccounts "default" is forbidden: node requested token with a pod binding without a uid',
    ],
    [
      () => token({ apiVersion: "v1", kind: "Pod", name: "other", uid }),
      'serviceaccounts "default" is forbidden: the UID in the bound object reference (UID) does not match the UID in record. The object might have been deleted and then recreated',
    ],
    [() => token({ apiVersion: "v1", kind: "Pod", name: "mine", uid }), "allowed"],
    [() => node.delete(resources.pods, "mine", { ...at, gracePeriodSeconds: 0 }), "allowed"],
    [
      () => node.get(resources.secrets, "mine", at),
      `secrets "mine" is forbidden: User "system:node:n1" cannot get resource "secrets" in API group "" in the namespace "default": no relationship found between node 'n1' and this object`,
    ],
  ];
  for (const [call, expected] of steps) assert.equal((await refusal(call())).replace(uid, "UID"), expected);
});
