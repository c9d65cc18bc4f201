import type { DeepReadonly } from "#base";
import { type Secret, type ServiceAccount, resources } from "#kinds";
import { type Controller, type ControllerDeps, createController } from "../runtime/controller.ts";
import { copyOf, fromCache, ignoreNotFound, keyOf } from "../runtime/objects.ts";

const TYPE = "kubernetes.io/service-account-token";
const NAME = "kubernetes.io/service-account.name";
const UID = "kubernetes.io/service-account.uid";

export interface TokenSecretsOptions {
  /** PEM of the authority that signs the API server's certificate. */
  readonly rootCA: string;
  /** A token without an end, good while the Secret that holds it is there. */
  sign(account: { namespace: string; name: string; uid: string; secret: string }): string;
}

/**
 * Fills Secrets of type `kubernetes.io/service-account-token`, and deletes them once their ServiceAccount is gone.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#token-controller
 */
export function createTokenSecretController(deps: ControllerDeps, options: TokenSecretsOptions): Controller {
  const secrets = deps.informers.for(resources.secrets);
  const accounts = deps.informers.for(resources.serviceAccounts);
  const ca = Buffer.from(options.rootCA).toString("base64");
  return createController(deps, {
    name: "serviceaccount-token",
    watch({ on, enqueue }) {
      const look = (secret: DeepReadonly<Secret>) => {
        if (secret.type === TYPE) enqueue(keyOf(secret));
      };
      const lookAtAll = ({ metadata }: DeepReadonly<ServiceAccount>) => {
        for (const secret of secrets.list())
          if (secret.metadata.namespace === metadata.namespace && secret.metadata.annotations?.[NAME] === metadata.name)
            look(secret);
      };
      on(secrets, { add: look, update: look });
      on(accounts, { add: lookAtAll, delete: lookAtAll });
    },
    async reconcile(key) {
      const secret = fromCache(secrets, key);
      const name = secret?.metadata.annotations?.[NAME];
      if (!secret || !name || secret.metadata.deletionTimestamp) return;
      const { namespace = "", uid: secretUid = "" } = secret.metadata;
      const account = accounts.get(namespace, name);
      const expected = secret.metadata.annotations?.[UID];
      if (!account || (expected && expected !== account.metadata.uid)) {
        const preconditions = { uid: secretUid };
        await ignoreNotFound(deps.client.delete(resources.secrets, secret.metadata.name, { namespace, preconditions }));
        return;
      }
      const uid = account.metadata.uid ?? "";
      const { data = {} } = secret;
      const scope = Buffer.from(namespace).toString("base64");
      if (data.token && data["ca.crt"] === ca && data.namespace === scope && expected) return;
      const token = options.sign({ namespace, name, uid, secret: secret.metadata.name });
      const copy = copyOf(resources.secrets, secret);
      await deps.client.update(resources.secrets, {
        ...copy,
        metadata: { ...copy.metadata, annotations: { ...copy.metadata.annotations, [UID]: uid } },
        data: {
          ...data,
          "ca.crt": ca,
          namespace: scope,
          token: data.token || Buffer.from(token).toString("base64"),
        },
      });
    },
  });
}
