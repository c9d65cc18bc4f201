import { generateKeyPairSync } from "node:crypto";
import { createSeededRandom, silentLogger, systemClock } from "#base";
import type { Client } from "#client";
import { isStatus, resources, type UserInfo } from "#kinds";
import { bootstrapObjects } from "../../src/cluster/bootstrap.ts";
import { type ControlPlane, createControlPlane } from "../../src/cluster/control-plane.ts";
import { createMemoryStore } from "../../src/store/memory/mod.ts";

export const MASTER: UserInfo = { username: "admin", groups: ["system:masters", "system:authenticated"] };
export const userNamed = (username: string, ...groups: string[]): UserInfo => ({
  username,
  groups: [...groups, "system:authenticated"],
});
export const nodeNamed = (name: string): UserInfo => userNamed(`system:node:${name}`, "system:nodes");

export interface AccessPlane extends AsyncDisposable {
  readonly plane: ControlPlane;
  readonly admin: Client;
  as(user: UserInfo | string): Client;
  /** What the call is refused with; "allowed" when it is not. */
  refusal(call: Promise<unknown>): Promise<string>;
}

/** The real API server on a memory store, with the objects that every cluster has; no controllers. */
export async function startAccessPlane(): Promise<AccessPlane> {
  const store = createMemoryStore();
  const { privateKey } = generateKeyPairSync("ec", {
    namedCurve: "P-256",
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  const plane = createControlPlane(
    { store, clock: systemClock, random: createSeededRandom(7), logger: silentLogger },
    {
      serviceCIDR: "10.96.0.0/16",
      serviceAccountKey: privateKey,
      serverAddress: () => "127.0.0.1:6443",
      health: {},
      connector: () => undefined,
    },
  );
  await bootstrapObjects(
    plane,
    {
      id: "test",
      hostAddress: "10.0.0.1",
      podCIDR: "10.244.0.0/16",
      serviceCIDR: "10.96.0.0/16",
      kubernetesServiceIP: "10.96.0.1",
      dnsServiceIP: "10.96.0.10",
    } as never,
    6443,
  );
  const admin = plane.clientAs(MASTER, "kubectl");
  for (const name of ["default", "kube-system"])
    await admin.create(resources.serviceAccounts, {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: "default", namespace: name },
    });
  return {
    plane,
    admin,
    as: (user) => plane.clientAs(typeof user === "string" ? userNamed(user) : user, "kubectl"),
    async refusal(call) {
      try {
        await call;
        return "allowed";
      } catch (error) {
        if (!isStatus(error, "Forbidden", "Invalid", "NotFound", "BadRequest", "Conflict", "Unauthorized")) throw error;
        return error.message;
      }
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

export const clusterRole = (name: string, ...rules: object[]): never =>
  ({ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name }, rules }) as never;
export const role = (namespace: string, name: string, ...rules: object[]): never =>
  ({ apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", metadata: { name, namespace }, rules }) as never;

/** A binding of `Role/name` or `ClusterRole/name` to subjects `User/jane`, `Group/devs`, `ServiceAccount/ns/name`. */
export function binding(
  kind: "RoleBinding" | "ClusterRoleBinding",
  metadata: { name: string; namespace?: string },
  ref: string,
  ...subjects: string[]
): never {
  const [refKind, ...refName] = ref.split("/");
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind,
    metadata,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: refKind, name: refName.join("/") },
    subjects: subjects.map((subject) => {
      const [of, first, second] = subject.split("/");
      if (of === "ServiceAccount") return { kind: of, namespace: first, name: second };
      return { kind: of, name: first, apiGroup: "rbac.authorization.k8s.io" };
    }),
  } as never;
}
