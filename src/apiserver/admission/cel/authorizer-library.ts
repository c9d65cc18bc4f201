import type { Environment } from "@marcbachmann/cel-js";
import { messageOf } from "#base";
import type { UserInfo } from "#kinds";
import type { AuthorizationAttributes, Authorizer } from "../../ports.ts";

const PREFIX = "kubernetes.authorization.";
const TYPES = {
  authorizer: `${PREFIX}Authorizer`,
  path: `${PREFIX}PathCheck`,
  group: `${PREFIX}GroupCheck`,
  resource: `${PREFIX}ResourceCheck`,
  decision: `${PREFIX}Decision`,
};

/** What a call is about, for `authorizer.requestResource`. */
type Asked = Pick<AuthorizationAttributes, "group" | "resource" | "subresource" | "namespace" | "name">;

/** `authorizer` in CEL: asks whether somebody may do something. */
export class CelAuthorizer {
  readonly authorizer: Authorizer;
  readonly user: UserInfo;
  readonly requestResource: ResourceCheck;
  constructor(authorizer: Authorizer, user: UserInfo, asked: Asked) {
    this.authorizer = authorizer;
    this.user = user;
    this.requestResource = new ResourceCheck(this, asked);
  }
}

class PathCheck {
  readonly by: Pick<CelAuthorizer, "authorizer" | "user">;
  readonly path: string;
  constructor(by: PathCheck["by"], path: string) {
    this.by = by;
    this.path = path;
  }
}

class GroupCheck {
  readonly by: PathCheck["by"];
  readonly group: string;
  constructor(by: PathCheck["by"], group: string) {
    this.by = by;
    this.group = group;
  }
}

class ResourceCheck {
  readonly by: PathCheck["by"];
  readonly asked: Asked & { readonly fieldSelector?: string };
  constructor(by: PathCheck["by"], asked: ResourceCheck["asked"]) {
    this.by = by;
    this.asked = asked;
  }
  with(more: Partial<ResourceCheck["asked"]>): ResourceCheck {
    return new ResourceCheck(this.by, { ...this.asked, ...more });
  }
}

class Decision {
  readonly allowed: boolean;
  readonly reason: string;
  readonly error: string;
  constructor(allowed: boolean, reason: string, error = "") {
    this.allowed = allowed;
    this.reason = reason;
    this.error = error;
  }
}

function decide(
  { authorizer, user }: PathCheck["by"],
  what: Omit<AuthorizationAttributes, "user" | "version">,
): Decision {
  try {
    const answer = authorizer.authorize({ ...what, user, version: "*" });
    if (answer instanceof Promise) throw new Error("the authorizer does not answer at once");
    return new Decision(answer.allowed, answer.reason);
  } catch (error) {
    return new Decision(false, "", messageOf(error));
  }
}

const NOTHING = { group: "", resource: "", subresource: "", namespace: "", name: "", path: "" };

/** https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-authorizer-library */
export function registerAuthorizer(env: Environment): void {
  const type = (name: string, ctor: unknown, fields: Record<string, string> = {}) =>
    env.registerType(name, { ctor, fields } as never);
  type(TYPES.path, PathCheck);
  type(TYPES.group, GroupCheck);
  type(TYPES.resource, ResourceCheck);
  type(TYPES.decision, Decision);
  type(TYPES.authorizer, CelAuthorizer, { requestResource: TYPES.resource });
  const define = (signature: string, handler: (...args: never[]) => unknown) =>
    env.registerFunction(signature, { handler: handler as (...args: unknown[]) => unknown, async: false });

  define(
    `${TYPES.authorizer}.path(string): ${TYPES.path}`,
    (by: CelAuthorizer, path: string) => new PathCheck(by, path),
  );
  define(
    `${TYPES.authorizer}.group(string): ${TYPES.group}`,
    (by: CelAuthorizer, group: string) => new GroupCheck(by, group),
  );
  define(
    `${TYPES.authorizer}.serviceAccount(string, string): ${TYPES.authorizer}`,
    ({ authorizer, requestResource }: CelAuthorizer, namespace: string, name: string) =>
      new CelAuthorizer(authorizer, accountUser(namespace, name), requestResource.asked),
  );
  define(`${TYPES.path}.check(string): ${TYPES.decision}`, ({ by, path }: PathCheck, verb: string) =>
    decide(by, { ...NOTHING, verb, path, isResourceRequest: false }),
  );
  define(
    `${TYPES.group}.resource(string): ${TYPES.resource}`,
    ({ by, group }: GroupCheck, resource: string) => new ResourceCheck(by, { ...NOTHING, group, resource }),
  );
  for (const field of ["subresource", "namespace", "name", "fieldSelector"] as const) {
    define(`${TYPES.resource}.${field}(string): ${TYPES.resource}`, (check: ResourceCheck, value: string) =>
      check.with({ [field]: value }),
    );
  }
  // no authorizer here looks at labels
  define(`${TYPES.resource}.labelSelector(string): ${TYPES.resource}`, (check: ResourceCheck) => check);
  define(`${TYPES.resource}.check(string): ${TYPES.decision}`, ({ by, asked }: ResourceCheck, verb: string) =>
    decide(by, { ...NOTHING, ...asked, verb, isResourceRequest: true }),
  );
  define(`${TYPES.decision}.allowed(): bool`, ({ allowed }: Decision) => allowed);
  define(`${TYPES.decision}.reason(): string`, ({ reason }: Decision) => reason);
  define(`${TYPES.decision}.errored(): bool`, ({ error }: Decision) => error !== "");
  define(`${TYPES.decision}.error(): string`, ({ error }: Decision) => error);
}

const accountUser = (namespace: string, name: string): UserInfo => ({
  username: `system:serviceaccount:${namespace}:${name}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
});
