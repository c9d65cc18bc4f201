import assert from "node:assert/strict";
import test from "node:test";
import { type CauseCode, type Cluster, type FakeEngineOptions, resources, startCluster } from "../../src/mod.ts";

/** A workload that can't become ready, and the cause that has to be named. */
interface Broken {
  readonly what: string;
  readonly manifest: string;
  readonly about: string;
  readonly code: CauseCode;
  /** The first sentence of the diagnosis. */
  readonly says: RegExp;
  readonly fake?: FakeEngineOptions;
  /** After the manifest was applied. */
  afterwards?(cluster: Cluster): Promise<unknown>;
}

const pod = (spec: string, name = "app") => `
apiVersion: v1
kind: Pod
metadata: { name: ${name}, labels: { app: ${name} } }
spec: ${spec}
`;
const deployment = (container: string, more = "") => `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      ${more}
      containers: [${container}]
`;
const container = "{ name: main, image: app }";
const exits = (exitCode: number, ...lines: string[]): FakeEngineOptions => ({
  script: () => ({ runMs: 1, exitCode, output: lines.map((text) => ({ text })) }),
});
const probe = (kind: string, more = "") =>
  `{ containers: [{ name: main, image: app, ${kind}: { exec: { command: [check] }, periodSeconds: 1, failureThreshold: 1 ${more} } }], terminationGracePeriodSeconds: 0 }`;
const sick: FakeEngineOptions = { script: () => ({ exec: () => ({ exitCode: 1, stdout: "no database" }) }) };

const cases: readonly Broken[] = [
  {
    what: "an image that does not exist",
    manifest: deployment("{ name: main, image: 'registry.example/app:9' }"),
    fake: { pull: (reference) => ({ code: "pull-not-found", error: `${reference}: not found` }) },
    about: "deployment/web",
    code: "image",
    says: /^The image "registry\.example\/app:9" of container "main" of pod "web-\S+" does not exist\.$/,
  },
  {
    what: "a registry that denies access",
    manifest: pod("{ containers: [{ name: main, image: secret }] }"),
    fake: {
      pull: () => ({
        code: "pull-denied",
        error: "pull access denied, repository does not exist or may require authorization",
      }),
    },
    about: "pod/app",
    code: "image",
    says: /^The registry does not let the image "secret" of container "main" of pod "app" be pulled/,
  },
  {
    what: "an image name that is none",
    manifest: pod("{ containers: [{ name: main, image: 'UPPER CASE' }] }"),
    about: "pod/app",
    code: "image",
    says: /^The image name "UPPER CASE" of container "main" of pod "app" is not valid\.$/,
  },
  {
    what: "an image that may not be pulled",
    manifest: pod("{ containers: [{ name: main, image: local, imagePullPolicy: Never }] }"),
    about: "pod/app",
    code: "image",
    says: /^The image "local" of container "main" of pod "app" is not on the node, and imagePullPolicy Never forbids/,
  },
  {
    what: "a container that crashes again and again",
    manifest: deployment(container),
    fake: exits(7, "connecting", "no route to database"),
    about: "deployment/web",
    code: "crash-loop",
    says: /^Container "main" of pod "web-\S+" ends with exit code 7( and is restarted again and again)?; it last said: no route to database\.$/,
  },
  {
    what: "a container that ends though it should run on",
    manifest: deployment(container),
    fake: exits(0, "done"),
    about: "deployment/web",
    code: "crash-loop",
    says: /^Container "main" of pod "web-\S+" ends at once though it should go on running and is restarted/,
  },
  {
    what: "a container that needs more memory than its limit",
    manifest: pod("{ containers: [{ name: main, image: app, resources: { limits: { memory: 64Mi } } }] }"),
    fake: { script: () => ({ runMs: 1, oomKilled: true }) },
    about: "pod/app",
    code: "out-of-memory",
    says: /^Container "main" of pod "app" needs more memory than its limit of 64Mi: it is killed\.$/,
  },
  {
    what: "a command that is not in the image",
    manifest: pod("{ containers: [{ name: main, image: app, command: [serv] }] }"),
    fake: { script: () => ({ startError: 'exec: "serv": executable file not found in $PATH' }) },
    about: "pod/app",
    code: "invalid-command",
    says: /^The command "serv" of container "main" of pod "app" is not in the image's \$PATH\.$/,
  },
  {
    what: "a failing init container",
    manifest: pod(`{ initContainers: [{ name: migrate, image: app }], containers: [${container}] }`),
    fake: {
      script: ({ config }) =>
        config.name === "migrate" ? { runMs: 1, exitCode: 2, output: [{ text: "table is locked" }] } : {},
    },
    about: "pod/app",
    code: "init-container",
    says: /^Init container "migrate" of pod "app" fails with exit code 2; it last said: table is locked\.$/,
  },
  {
    what: "a liveness probe that fails",
    manifest: pod(probe("livenessProbe")),
    fake: sick,
    about: "pod/app",
    code: "liveness-probe",
    says: /^The liveness probe of container "main" of pod "app" fails, so that it is killed and restarted: no database\.$/,
  },
  {
    what: "a startup probe that fails",
    manifest: pod(probe("startupProbe")),
    fake: sick,
    about: "pod/app",
    code: "startup-probe",
    says: /^The startup probe of container "main" of pod "app" fails/,
  },
  {
    what: "a readiness probe that fails",
    manifest: pod(probe("readinessProbe")),
    fake: sick,
    about: "pod/app",
    code: "readiness-probe",
    says: /^The readiness probe of container "main" of pod "app" fails: no database\.$/,
  },
  {
    what: "an environment from a ConfigMap that does not exist",
    manifest: deployment("{ name: main, image: app, envFrom: [{ configMapRef: { name: settings } }] }"),
    about: "deployment/web",
    code: "config-missing",
    says: /^Container "main" of pod "web-\S+" needs the ConfigMap "settings", which does not exist\.$/,
  },
  {
    what: "a variable from a key that the Secret lacks",
    manifest: `apiVersion: v1\nkind: Secret\nmetadata: { name: db }\n---${pod(
      "{ containers: [{ name: main, image: app, env: [{ name: P, valueFrom: { secretKeyRef: { name: db, key: password } } }] }] }",
    )}`,
    about: "pod/app",
    code: "config-missing",
    says: /^Container "main" of pod "app" needs the key "password" of the Secret default\/db, which it does not have\.$/,
  },
  {
    what: "a volume from a ConfigMap that does not exist",
    manifest: pod(`{ containers: [${container}], volumes: [{ name: conf, configMap: { name: files } }] }`).replace(
      "image: app }",
      "image: app, volumeMounts: [{ name: conf, mountPath: /conf }] }",
    ),
    about: "pod/app",
    code: "config-missing",
    says: /^The volume "conf" of pod "app" needs the ConfigMap "files", which does not exist\.$/,
  },
  {
    what: "more CPU than any node has",
    manifest: deployment("{ name: main, image: app, resources: { requests: { cpu: '9000' } } }"),
    about: "deployment/web",
    code: "unschedulable",
    says: /^No node has enough cpu \(it requests 9k\) left for pod "web-\S+"\.$/,
  },
  {
    what: "a node selector that no node matches",
    manifest: pod(`{ nodeSelector: { disk: ssd }, containers: [${container}] }`),
    about: "pod/app",
    code: "unschedulable",
    says: /^No node fits pod "app": none matches its node selector disk=ssd\.$/,
  },
  {
    what: "a taint that is not tolerated",
    manifest: pod(`{ nodeName: "", containers: [${container}] }`),
    about: "pod/late",
    code: "taint",
    says: /^Pod "late" does not tolerate the taint gpu=yes:NoSchedule of the node "node"/,
    async afterwards(cluster) {
      await cluster.client.patch(resources.nodes, "node", {
        type: "merge",
        body: { spec: { taints: [{ key: "gpu", value: "yes", effect: "NoSchedule" }] } },
      });
      await cluster.apply(pod(`{ containers: [${container}] }`, "late"));
    },
  },
  {
    what: "a host port that is taken",
    manifest: ["first", "second"]
      .map((name) =>
        pod("{ containers: [{ name: main, image: app, ports: [{ containerPort: 80, hostPort: 80 }] }] }", name),
      )
      .join("---"),
    about: "pod/second",
    code: "host-port-conflict",
    says: /^Pod "second" wants the host port 80, which another pod holds/,
  },
  {
    what: "a scheduling gate",
    manifest: pod(`{ schedulingGates: [{ name: example.com/hold }], containers: [${container}] }`),
    about: "pod/app",
    code: "scheduling-gated",
    says: /^Pod "app" is held back by the scheduling gate "example\.com\/hold"\.$/,
  },
  {
    what: "a readiness gate that nobody opens",
    manifest: pod(`{ readinessGates: [{ conditionType: example.com/balanced }], containers: [${container}] }`),
    about: "pod/app",
    code: "readiness-gate",
    says: /^The containers of pod "app" are ready, but its readiness gate "example\.com\/balanced" is not True/,
  },
  {
    what: "a ServiceAccount that does not exist",
    manifest: deployment(container, "serviceAccountName: robot"),
    about: "deployment/web",
    code: "service-account",
    says: /^The pods of ReplicaSet "web-\S+" run as the ServiceAccount "robot", which does not exist\.$/,
  },
  {
    what: "a claim whose StorageClass does not exist",
    manifest: `apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: { name: data }\nspec: { storageClassName: fast, accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }\n---${pod(
      "{ containers: [{ name: main, image: app, volumeMounts: [{ name: data, mountPath: /data }] }], volumes: [{ name: data, persistentVolumeClaim: { claimName: data } }] }",
    )}`,
    about: "pod/app",
    code: "claim-pending",
    says: /^The PersistentVolumeClaim "data" asks for the StorageClass "fast", which does not exist\.$/,
  },
  {
    what: "a claim that does not exist",
    manifest: pod(
      "{ containers: [{ name: main, image: app, volumeMounts: [{ name: data, mountPath: /data }] }], volumes: [{ name: data, persistentVolumeClaim: { claimName: gone } }] }",
    ),
    about: "pod/app",
    code: "volume",
    says: /^Pod "app" needs the PersistentVolumeClaim "gone", which does not exist\.$/,
  },
  {
    what: "a Job that fails for good",
    manifest: `apiVersion: batch/v1\nkind: Job\nmetadata: { name: load }\nspec: { backoffLimit: 0, template: { spec: { restartPolicy: Never, containers: [${container}] } } }`,
    fake: exits(4, "bad input"),
    about: "job/load",
    code: "job-failed",
    says: /^The Job "load" failed: Job has reached the specified backoff limit: container "main" of pod "load-\S+" ends with exit code 4; it last said: bad input\.$/,
  },
  {
    what: "a Service whose selector fits no pod",
    manifest: `${pod(`{ containers: [${container}] }`)}---\napiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { selector: { app: wep }, ports: [{ port: 80 }] }`,
    about: "service/web",
    code: "no-endpoints",
    says: /^No pod has the labels app=wep that the Service "web" selects\.$/,
  },
  {
    what: "a rollout that is out of time",
    manifest: deployment("{ name: main, image: app, envFrom: [{ secretRef: { name: keys } }] }").replace(
      "spec:\n",
      "spec:\n  progressDeadlineSeconds: 1\n",
    ),
    about: "deployment/web",
    code: "rollout-deadline",
    says: /^The rollout of Deployment "web" made no progress for 1 s: container "main" of pod "web-\S+" needs the Secret "keys", which does not exist\.$/,
  },
  {
    what: "a finalizer that nobody removes",
    manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: held, finalizers: [example.com/guard] }",
    about: "configmap/held",
    code: "finalizer",
    says: /^ConfigMap "held" was deleted, but its finalizer "example\.com\/guard" is still there/,
    afterwards: (cluster) => cluster.client.delete(resources.configMaps, "held", { namespace: "default" }),
  },
  {
    what: "a DaemonSet for nodes that there are none of",
    manifest: `apiVersion: apps/v1\nkind: DaemonSet\nmetadata: { name: agent }\nspec: { selector: { matchLabels: { a: b } }, template: { metadata: { labels: { a: b } }, spec: { nodeSelector: { role: edge }, containers: [${container}] } } }`,
    about: "daemonset/agent",
    code: "no-nodes",
    says: /^DaemonSet "agent" runs nowhere: no node has the labels role=edge\.$/,
  },
  {
    what: "a sandbox that can't be made",
    manifest: pod(`{ containers: [${container}] }`),
    fake: { sandbox: () => ({ error: "no free address in 10.244.0.0/24" }) },
    about: "pod/app",
    code: "sandbox",
    says: /^The sandbox of pod "app" can't be made: .*no free address in 10\.244\.0\.0\/24\.$/,
  },
];

for (const broken of cases) {
  test(`why: ${broken.what}`, { timeout: 60_000 }, async () => {
    await using cluster = await startCluster({
      engine: "fake",
      listen: false,
      ...(broken.fake ? { fake: broken.fake } : {}),
    });
    await cluster.apply(broken.manifest);
    await broken.afterwards?.(cluster);
    const first = await untilNamed(cluster, broken);
    assert.match(first, broken.says);
  });
}

/** The causes show one after another (a crash before its back-off, a probe before its kill): the one that stays is meant. */
async function untilNamed(cluster: Cluster, { about, code, says }: Broken): Promise<string> {
  const end = performance.now() + 20_000;
  for (;;) {
    const { causes, text, ready } = await cluster.why(about);
    const first = text.split("\n")[0] ?? "";
    if (causes[0]?.code === code && says.test(first)) {
      assert.equal(ready, false);
      assert.ok(causes[0].evidence.length > 0, "a cause without evidence");
      return first;
    }
    if (performance.now() > end) return text;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
