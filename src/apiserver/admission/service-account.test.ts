import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock, createSeededRandom } from "#base";
import { type Pod, resources } from "#kinds";
import { attributesOf, createFakeReader, run } from "./fixture.ts";
import { createServiceAccountAdmission } from "./service-account.ts";

function setUp() {
  const reader = createFakeReader();
  const clock = createFakeClock();
  const plugin = createServiceAccountAdmission({ reader, clock, random: createSeededRandom(1) });
  const account = (name: string, more: object = {}) =>
    reader.put(resources.serviceAccounts, { metadata: { name, namespace: "ns" }, ...more });
  return { reader, clock, plugin, account };
}

const podOf = (spec: Partial<NonNullable<Pod["spec"]>> = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", namespace: "ns" },
  spec: { containers: [{ name: "main", image: "x" }], ...spec },
});

test("a pod gets the default account, its token volume in every container, and the account's pull secrets", async () => {
  const { plugin, account } = setUp();
  account("default", { imagePullSecrets: [{ name: "registry" }] });
  const pod = podOf({ initContainers: [{ name: "init", image: "x" }] });
  await run(plugin, attributesOf(resources.pods, { object: pod }));
  const name = pod.spec?.volumes?.[0]?.name ?? "";
  assert.match(name, /^kube-api-access-[a-z0-9]{5}$/);
  assert.equal(pod.spec?.serviceAccountName, "default");
  assert.equal(pod.spec?.serviceAccount, "default");
  assert.deepEqual(pod.spec?.imagePullSecrets, [{ name: "registry" }]);
  const mount = { name, readOnly: true, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" };
  assert.deepEqual(pod.spec?.containers[0]?.volumeMounts, [mount]);
  assert.deepEqual(pod.spec?.initContainers?.[0]?.volumeMounts, [mount]);
  assert.equal(pod.spec?.volumes?.[0]?.projected?.sources?.[0]?.serviceAccountToken?.expirationSeconds, 3607);
});

test("a pod without containers is left to validation", async () => {
  const { plugin, account } = setUp();
  account("default");
  const pod = podOf();
  delete (pod.spec as Partial<NonNullable<Pod["spec"]>>).containers;
  await run(plugin, attributesOf(resources.pods, { object: pod }));
  assert.equal(pod.spec?.serviceAccountName, "default");
});

test("no token where the pod or its account say so, or the path is taken", async () => {
  const { plugin, account } = setUp();
  account("default");
  account("quiet", { automountServiceAccountToken: false });
  const mountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
  const pods = [
    podOf({ automountServiceAccountToken: false }),
    podOf({ serviceAccountName: "quiet" }),
    podOf({ containers: [{ name: "main", volumeMounts: [{ name: "own", mountPath }] }] }),
  ];
  for (const pod of pods) {
    await run(plugin, attributesOf(resources.pods, { object: pod }));
    assert.equal(pod.spec?.volumes, undefined);
  }
  const loud = podOf({ serviceAccountName: "quiet", automountServiceAccountToken: true });
  await run(plugin, attributesOf(resources.pods, { object: loud }));
  assert.equal(loud.spec?.volumes?.length, 1);
});

test("an absent account refuses the pod", async () => {
  const { plugin } = setUp();
  await assert.rejects(run(plugin, attributesOf(resources.pods, { object: podOf({ serviceAccountName: "robot" }) })), {
    message: 'pods "web" is forbidden: error looking up service account ns/robot: serviceaccount "robot" not found',
  });
});

test("the default account is waited for", async () => {
  const { plugin, account, clock } = setUp();
  const admitted = run(plugin, attributesOf(resources.pods, { object: podOf() }));
  await clock.advance(100);
  account("default");
  await admitted;
  const late = setUp();
  const refused = assert.rejects(run(late.plugin, attributesOf(resources.pods, { object: podOf() })), {
    message: /not found/,
  });
  await late.clock.advance(1500);
  await refused;
});

test("an account that lists its secrets refuses pods that use others", async () => {
  const { plugin, account } = setUp();
  account("strict", {
    metadata: { name: "strict", namespace: "ns", annotations: { "kubernetes.io/enforce-mountable-secrets": "true" } },
    secrets: [{ name: "ok" }],
  });
  const withSecret = (secretName: string) =>
    podOf({ serviceAccountName: "strict", volumes: [{ name: "v", secret: { secretName } }] });
  await run(plugin, attributesOf(resources.pods, { object: withSecret("ok") }));
  await assert.rejects(run(plugin, attributesOf(resources.pods, { object: withSecret("other") })), {
    message:
      'pods "web" is forbidden: volume with secret.secretName="other" is not allowed because service account strict does not reference that secret',
  });
});
