import assert from "node:assert/strict";
import test from "node:test";
import { diagnose, renderDiagnosis } from "./diagnose.ts";
import type { CauseCode, Evidence } from "./evidence.ts";

/** Evidence of which only the interesting part is given. */
function evidence(object: object, more: Partial<Record<keyof Evidence, unknown>> = {}): Evidence {
  return { object, related: [], pods: [], events: [], logs: new Map(), ...more } as Evidence;
}

function pod(status: object, spec: object = {}, metadata: object = {}) {
  return {
    kind: "Pod",
    metadata: { name: "p", namespace: "default", ...metadata },
    spec: { nodeName: "n1", containers: [{ name: "c", image: "app:1" }], ...spec },
    status: { phase: "Pending", ...status },
  };
}

const event = (kind: string, name: string, reason: string, message: string, more: object = {}) => ({
  involvedObject: { kind, name },
  type: "Warning",
  reason,
  message,
  lastTimestamp: "2026-01-01T00:00:00Z",
  metadata: {},
  ...more,
});

const replicaSet = {
  kind: "ReplicaSet",
  metadata: { name: "web-1", namespace: "default" },
  spec: { replicas: 1 },
  status: {},
};
const refused = (message: string) =>
  evidence(replicaSet, { events: [event("ReplicaSet", "web-1", "FailedCreate", message)] });
const claim = (spec: object, status: object = {}) => ({
  kind: "PersistentVolumeClaim",
  metadata: { name: "data", namespace: "default" },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, ...spec },
  status: { phase: "Pending", ...status },
});
const service = (spec: object) => ({ kind: "Service", metadata: { name: "web", namespace: "default" }, spec });

const cases: readonly [what: string, evidence: Evidence, code: CauseCode, sentence: RegExp][] = [
  [
    "quota",
    refused(
      'Error creating: pods "web-1-x" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2',
    ),
    "quota",
    /^the ResourceQuota "few" does not let ReplicaSet "web-1" create more pods: requested: pods=1, used: pods=2, limited: pods=2$/,
  ],
  [
    "quota that wants requests",
    refused('Error creating: pods "x" is forbidden: failed quota: strict: must specify cpu for: c; memory for: c'),
    "quota",
    /^the ResourceQuota "strict" refuses the pods of ReplicaSet "web-1": must specify cpu for: c; memory for: c$/,
  ],
  [
    "webhook that refuses",
    refused('Error creating: admission webhook "policy.example.com" denied the request: no latest tags'),
    "webhook",
    /^the admission webhook "policy\.example\.com" refuses the pods of ReplicaSet "web-1": no latest tags$/,
  ],
  [
    "webhook that is down",
    refused(
      'Error creating: Internal error occurred: failed calling webhook "p.example.com": failed to call webhook: Post "https://p.default.svc:443/?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused',
    ),
    "webhook",
    /^the admission webhook "p\.example\.com", which must allow the pods of ReplicaSet "web-1", can't be called: .*connection refused$/,
  ],
  [
    "service account",
    refused(
      'Error creating: pods "web-1-" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found',
    ),
    "service-account",
    /^the pods of ReplicaSet "web-1" run as the ServiceAccount "robot", which does not exist$/,
  ],
  [
    "pod security",
    refused('Error creating: pods "web-1-x" is forbidden: violates PodSecurity "restricted:latest": privileged'),
    "admission-refused",
    /^the API server refuses the pods of ReplicaSet "web-1": violates PodSecurity "restricted:latest": privileged$/,
  ],
  [
    "eviction",
    evidence(pod({ phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory." })),
    "evicted",
    /^pod "p" was evicted from its node: The node was low on resource: memory\.$/,
  ],
  [
    "deadline of a pod",
    evidence(pod({ phase: "Failed", reason: "DeadlineExceeded", message: "x" }, { activeDeadlineSeconds: 5 })),
    "pod-failed",
    /^pod "p" ran longer than its activeDeadlineSeconds of 5$/,
  ],
  [
    "a node that is down",
    evidence(pod({ conditions: [{ type: "Ready", status: "False" }] }), {
      related: [
        {
          kind: "Node",
          metadata: { name: "n1" },
          status: {
            conditions: [
              {
                type: "Ready",
                status: "Unknown",
                reason: "NodeStatusUnknown",
                message: "Kubelet stopped posting node status.",
              },
            ],
          },
        },
      ],
    }),
    "node-down",
    /^the node "n1" of pod "p" is not ready: Kubelet stopped posting node status\.$/,
  ],
  [
    "an image behind its back-off",
    evidence(
      pod({
        containerStatuses: [
          {
            name: "c",
            ready: false,
            restartCount: 0,
            image: "app:1",
            state: { waiting: { reason: "ImagePullBackOff", message: 'Back-off pulling image "app:1"' } },
          },
        ],
      }),
      {
        events: [
          event("Pod", "p", "Failed", 'Failed to pull image "app:1": dial tcp: lookup registry.local: no such host'),
        ],
      },
    ),
    "image",
    /^the image "app:1" of container "c" of pod "p" can't be pulled: dial tcp: lookup registry\.local: no such host$/,
  ],
  [
    "a postStart hook",
    evidence(
      pod({
        containerStatuses: [
          {
            name: "c",
            ready: false,
            restartCount: 1,
            image: "app:1",
            state: {
              waiting: {
                reason: "PostStartHookError",
                message: `Exec lifecycle hook ([x]) for Container "c" in Pod "p_default(1)" failed - error: command 'x' exited with 1: , message: ""`,
              },
            },
          },
        ],
      }),
    ),
    "hook-failed",
    /^the postStart hook of container "c" of pod "p" fails: command 'x' exited with 1$/,
  ],
  [
    "a postStart hook, between two tries",
    evidence(
      pod({
        containerStatuses: [
          {
            name: "c",
            ready: false,
            restartCount: 2,
            image: "app:1",
            state: { waiting: { reason: "CrashLoopBackOff" } },
            lastState: { terminated: { exitCode: 137, reason: "Error" } },
          },
        ],
      }),
      {
        events: [
          event("Pod", "p", "FailedPostStartHook", "PostStartHook failed", {
            involvedObject: { kind: "Pod", name: "p", fieldPath: "spec.containers{c}" },
          }),
        ],
      },
    ),
    "hook-failed",
    /^the postStart hook of container "c" of pod "p" fails, so that it is killed and restarted: it ended with an error$/,
  ],
  [
    "runAsNonRoot",
    evidence(
      pod({
        containerStatuses: [
          {
            name: "c",
            ready: false,
            restartCount: 0,
            image: "app:1",
            state: {
              waiting: {
                reason: "CreateContainerConfigError",
                message: `container has runAsNonRoot and image will run as root (pod: "p_default(1)", container: c)`,
              },
            },
          },
        ],
      }),
    ),
    "container-config",
    /^container "c" of pod "p" can't be configured: container has runAsNonRoot and image will run as root$/,
  ],
  [
    "a volume that can't be mounted",
    evidence(pod({}), {
      events: [
        event(
          "Pod",
          "p",
          "FailedMount",
          'MountVolume.SetUp failed for volume "host" : hostPath type check failed: /data is not a directory',
        ),
      ],
    }),
    "volume",
    /^the volume "host" of pod "p" can't be mounted: hostPath type check failed: \/data is not a directory$/,
  ],
  [
    "a claim without a class",
    evidence(claim({}), {
      events: [
        event(
          "PersistentVolumeClaim",
          "data",
          "FailedBinding",
          "no persistent volumes available for this claim and no storage class is set",
        ),
      ],
    }),
    "claim-pending",
    /^no PersistentVolume fits the PersistentVolumeClaim "data" \(1Gi, ReadWriteOnce\), and it has no StorageClass that could make one$/,
  ],
  [
    "a claim whose volume is lost",
    evidence(claim({ volumeName: "pv1" }, { phase: "Lost" })),
    "claim-pending",
    /^the PersistentVolumeClaim "data" lost its volume "pv1", which does not exist any more$/,
  ],
  [
    "a named port that no container has",
    evidence(service({ selector: { app: "web" }, ports: [{ port: 80, targetPort: "web" }] }), {
      pods: [
        pod({ phase: "Running", conditions: [{ type: "Ready", status: "True" }] }, {}, { labels: { app: "web" } }),
      ],
    }),
    "no-endpoints",
    /^the Service "web" sends port 80 to the port named "web", which no container of its pods has$/,
  ],
  [
    "an ingress without its service",
    evidence({
      kind: "Ingress",
      metadata: { name: "front", namespace: "default" },
      spec: { rules: [{ http: { paths: [{ backend: { service: { name: "web", port: { number: 80 } } } }] } }] },
    }),
    "backend-missing",
    /^the Ingress "front" sends to the Service "web", which does not exist$/,
  ],
  [
    "a namespace that does not go away",
    evidence({
      kind: "Namespace",
      metadata: { name: "old", deletionTimestamp: "2026-01-01T00:00:00Z" },
      status: {
        conditions: [
          {
            type: "NamespaceContentRemaining",
            status: "True",
            reason: "SomeResourcesRemain",
            message: "Some resources are remaining: pods. has 1 resource instances",
          },
          {
            type: "NamespaceFinalizersRemaining",
            status: "True",
            reason: "SomeFinalizersRemain",
            message: "Some content in the namespace has finalizers remaining: a/b in 1 resource instances",
          },
        ],
      },
    }),
    "finalizer",
    /^the namespace "old" can't be removed yet: Some content in the namespace has finalizers remaining: a\/b in 1 resource instances$/,
  ],
  [
    "an aggregated API that is down",
    evidence({
      kind: "APIService",
      metadata: { name: "v1.metrics" },
      status: {
        conditions: [
          {
            type: "Available",
            status: "False",
            reason: "MissingEndpoints",
            message: "endpoints for service/metrics are missing",
          },
        ],
      },
    }),
    "api-service-unavailable",
    /^APIService "v1\.metrics" is not Available: endpoints for service\/metrics are missing$/,
  ],
  [
    "a suspended job",
    evidence({ kind: "Job", metadata: { name: "j", namespace: "default" }, spec: { suspend: true }, status: {} }),
    "paused",
    /^the Job "j" is suspended$/,
  ],
];

for (const [what, given, code, sentence] of cases) {
  test(`diagnose() ${what}`, () => {
    const { causes, ready } = diagnose(given);
    assert.equal(ready, false);
    assert.equal(causes[0]?.code, code);
    assert.match(causes[0]?.sentence ?? "", sentence);
  });
}

test("diagnose() a refusal that was overcome is no cause", () => {
  const events = [
    event("ReplicaSet", "web-1", "FailedCreate", "Error creating: exceeded quota: q, x", {
      lastTimestamp: "2026-01-01T00:00:00Z",
    }),
    event("ReplicaSet", "web-1", "SuccessfulCreate", "Created pod: web-1-a", { lastTimestamp: "2026-01-01T00:00:05Z" }),
  ];
  assert.deepEqual(diagnose(evidence(replicaSet, { events })).causes, []);
});

test("diagnose() pods with the same fault are told once", () => {
  const broken = (name: string) =>
    pod(
      {
        containerStatuses: [
          {
            name: "c",
            ready: false,
            restartCount: 0,
            image: "app:1",
            state: { waiting: { reason: "InvalidImageName", message: "x" } },
          },
        ],
      },
      {},
      { name },
    );
  const { causes } = diagnose(evidence(replicaSet, { pods: [broken("web-1-a"), broken("web-1-b")] }));
  assert.equal(causes.length, 1);
});

test("renderDiagnosis() puts the cause first and the evidence below", () => {
  const text = renderDiagnosis(diagnose(refused("Error creating: exceeded quota: few, used: pods=2")));
  assert.equal(
    text,
    'The ResourceQuota "few" does not let ReplicaSet "web-1" create more pods: used: pods=2.\n  event Warning FailedCreate: Error creating: exceeded quota: few, used: pods=2\n',
  );
});

test("renderDiagnosis() of what is well", () => {
  const object = { kind: "ConfigMap", metadata: { name: "c", namespace: "default" } };
  assert.equal(
    renderDiagnosis(diagnose(evidence(object))),
    'ConfigMap "c" in namespace default is as it should be: exists.\n',
  );
});
