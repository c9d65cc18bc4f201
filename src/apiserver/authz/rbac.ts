import type { DeepReadonly } from "#base";
import {
  type ApiObject,
  type ClusterRoleBinding,
  type PolicyRule,
  type RoleBinding,
  type Resource,
  resources,
  type Subject,
  type UserInfo,
} from "#kinds";
import { splitServiceAccount } from "../authn/users.ts";
import type { Authorizer, Reader } from "../ports.ts";
import { ruleAllows } from "./rules.ts";

type Rules = readonly DeepReadonly<PolicyRule>[];
type AnyBinding = DeepReadonly<RoleBinding | ClusterRoleBinding>;

/** Rules that somebody has; `errors` tells of bindings whose role is not there. */
export interface UserRules {
  readonly rules: Rules;
  readonly errors: readonly string[];
}

export interface RbacAuthorizer extends Authorizer, Disposable {
  /** Rules of a user in a namespace, those for the whole cluster included; without a namespace only these. */
  rulesOf(user: UserInfo, namespace: string): UserRules;
  /** Rules of a role; undefined when there is none. */
  rulesOfRole(kind: string, namespace: string, name: string): Rules | undefined;
}

/**
 * Role-based access control. Bindings are indexed by whom they name, kept up by the store's changes, so that a check
 * looks only at the few bindings of the user and its groups.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/rbac/
 */
export function createRbacAuthorizer({ reader }: { reader: Reader }): RbacAuthorizer {
  const subscriptions = new DisposableStack();
  /** By namespace, "" for ClusterRoleBindings. */
  const index = new Map<string, SubjectIndex>();
  const track = (resource: Resource<never>) => {
    const put = (object: ApiObject, deleted: boolean) => {
      const binding = object as unknown as AnyBinding;
      const namespace = binding.metadata.namespace ?? "";
      const there = index.get(namespace) ?? createSubjectIndex();
      index.set(namespace, there);
      there.remove(binding.metadata.name);
      if (!deleted) there.add(binding);
      else if (there.size === 0) index.delete(namespace);
    };
    subscriptions.use(reader.onChange(resource as Resource, put));
    for (const object of reader.list(resource as Resource)) put(object, false);
  };
  track(resources.clusterRoleBindings as Resource<never>);
  track(resources.roleBindings as Resource<never>);

  const rulesOfRole = (kind: string, namespace: string, name: string): Rules | undefined => {
    const role =
      kind === "Role"
        ? reader.get(resources.roles, namespace, name)
        : reader.get(resources.clusterRoles, undefined, name);
    return role && (role.rules ?? []);
  };

  /** Calls `visit` for every rule until it returns true; gives the binding that had it. */
  const search = (
    user: UserInfo,
    namespace: string,
    errors: string[],
    visit: (rule: DeepReadonly<PolicyRule>) => boolean,
  ): { binding: AnyBinding; subject: DeepReadonly<Subject> } | undefined => {
    for (const place of namespace ? ["", namespace] : [""]) {
      const bindings = index.get(place)?.of(user);
      if (!bindings) continue;
      for (const [binding, subject] of bindings) {
        const { kind, name } = binding.roleRef;
        const rules = rulesOfRole(kind, place, name);
        if (!rules) errors.push(`${kind.toLowerCase()}.rbac.authorization.k8s.io ${JSON.stringify(name)} not found`);
        else for (const rule of rules) if (visit(rule)) return { binding, subject };
      }
    }
    return undefined;
  };

  return {
    rulesOfRole,
    rulesOf(user, namespace) {
      const rules: DeepReadonly<PolicyRule>[] = [];
      const errors: string[] = [];
      search(user, namespace, errors, (rule) => {
        rules.push(rule);
        return false;
      });
      return { rules, errors };
    },
    authorize(attributes) {
      const errors: string[] = [];
      const found = search(attributes.user, attributes.namespace, errors, (rule) => ruleAllows(rule, attributes));
      if (found) return { allowed: true, reason: reasonOf(found.binding, found.subject) };
      return { allowed: false, reason: errors.length > 0 ? `RBAC: ${listed(errors)}` : "" };
    },
    [Symbol.dispose]: () => subscriptions.dispose(),
  };
}

/** Several errors as one, in the original's form. */
function listed(errors: readonly string[]): string {
  const each = [...new Set(errors)];
  return each.length === 1 ? each[0]! : `[${each.join(", ")}]`;
}

function reasonOf({ kind, metadata, roleRef }: AnyBinding, subject: DeepReadonly<Subject>): string {
  const place = metadata.namespace ? `${metadata.name}/${metadata.namespace}` : metadata.name;
  const who =
    subject.kind === "ServiceAccount"
      ? `${subject.name}/${subject.namespace ?? metadata.namespace ?? ""}`
      : subject.name;
  return `RBAC: allowed by ${kind} ${JSON.stringify(place)} of ${roleRef.kind} ${JSON.stringify(roleRef.name)} to ${subject.kind} ${JSON.stringify(who)}`;
}

interface SubjectIndex {
  readonly size: number;
  add(binding: AnyBinding): void;
  remove(name: string): void;
  /** Bindings that name the user or one of its groups, each with the subject that does. */
  of(user: UserInfo): Iterable<readonly [AnyBinding, DeepReadonly<Subject>]>;
}

function createSubjectIndex(): SubjectIndex {
  const byName = new Map<string, AnyBinding>();
  const bySubject = new Map<string, Map<string, readonly [AnyBinding, DeepReadonly<Subject>]>>();
  return {
    get size() {
      return byName.size;
    },
    add(binding) {
      byName.set(binding.metadata.name, binding);
      for (const subject of binding.subjects ?? []) {
        const key = keyOf(subject, binding.metadata.namespace);
        const bindings = bySubject.get(key) ?? new Map();
        bindings.set(binding.metadata.name, [binding, subject]);
        bySubject.set(key, bindings);
      }
    },
    remove(name) {
      const binding = byName.get(name);
      if (!binding) return;
      byName.delete(name);
      for (const subject of binding.subjects ?? []) {
        const key = keyOf(subject, binding.metadata.namespace);
        const bindings = bySubject.get(key);
        bindings?.delete(name);
        if (bindings?.size === 0) bySubject.delete(key);
      }
    },
    *of(user) {
      yield* bySubject.get(`User ${user.username}`)?.values() ?? [];
      const account = splitServiceAccount(user.username);
      if (account) yield* bySubject.get(`ServiceAccount ${account.namespace}/${account.name}`)?.values() ?? [];
      for (const group of user.groups) yield* bySubject.get(`Group ${group}`)?.values() ?? [];
    },
  };
}

function keyOf(subject: DeepReadonly<Subject>, namespace: string | undefined): string {
  if (subject.kind === "ServiceAccount") return `ServiceAccount ${subject.namespace || namespace}/${subject.name}`;
  return `${subject.kind} ${subject.name}`;
}
