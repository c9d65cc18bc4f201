import assert from "node:assert/strict";
import test from "node:test";
import { type DeepReadonly, deepClone } from "#base";
import { type Job, type JobSpec, type Pod, type PodStatus, resources } from "#kinds";
import { createHarness, type Harness } from "../testing/harness.ts";
import { formatIndexes, parseIndexes } from "./indexes.ts";
import { createJobController } from "./job.ts";
import { matchFailurePolicy, matchSuccessPolicy } from "./policies.ts";

const at = { namespace: "default" };

function makeJob(spec: Partial<JobSpec> = {}): Job {
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: "work", namespace: "default" },
    spec: {
      parallelism: 1,
      completions: 1,
      backoffLimit: 6,
      completionMode: "NonIndexed",
      podReplacementPolicy: "TerminatingOrFailed",
      selector: { matchLabels: { job: "work" } },
      template: {
        metadata: { labels: { job: "work" } },
        spec: { restartPolicy: "Never", containers: [{ name: "c" }] },
      },
      ...spec,
    },
  };
}

/** Runs on every new pod; gives its final status, or undefined to let it run. */
type Script = (pod: DeepReadonly<Pod>, number: number) => PodStatus | undefined;

async function withJob(job: Job, script: Script, body: (harness: Harness) => Promise<void>): Promise<void> {
  await using harness = createHarness();
  const { client } = harness;
  let number = 0;
  harness.informers.for(resources.pods).onChange({
    add(pod) {
      const status = script(pod, number++);
      if (!status) return;
      const { name } = pod.metadata;
      void client
        .patch(resources.pods, name, { type: "merge", body: { status } }, { ...at, subresource: "status" })
        .catch(() => {});
    },
  });
  await using controller = createJobController(harness.deps);
  await controller.start();
  await client.create(resources.jobs, job);
  await body(harness);
}

const failedAt = (time: number, exitCode = 1): PodStatus => ({
  phase: "Failed",
  containerStatuses: [
    {
      name: "c",
      ready: false,
      restartCount: 0,
      image: "",
      imageID: "",
      state: { terminated: { exitCode, finishedAt: new Date(time).toISOString() } },
    },
  ],
});
const LONG_AGO = Date.UTC(2020, 0, 1);
const succeed: Script = () => ({ phase: "Succeeded" });
const fail: Script = () => failedAt(LONG_AGO);

const over = ({ client, until }: Harness) =>
  until("the Job is over", async () => {
    const job = await client.get(resources.jobs, "work", at);
    return job.status?.conditions?.some(({ type }) => type === "Complete" || type === "Failed") ? job : undefined;
  });
const conditions = (job: DeepReadonly<Job>) =>
  job.status?.conditions?.map(({ type, status, reason, message }) => [type, status, reason, message]);

test("a Job completes: conditions, counts, events, and no finalizer is left", () =>
  withJob(makeJob({ completions: 5, parallelism: 2 }), succeed, async (harness) => {
    const job = await over(harness);
    const message = "Reached expected number of succeeded pods";
    assert.deepEqual(conditions(job), [
      ["SuccessCriteriaMet", "True", "CompletionsReached", message],
      ["Complete", "True", "CompletionsReached", message],
    ]);
    const { conditions: _, startTime, completionTime, ...counts } = job.status!;
    assert.deepEqual(counts, { succeeded: 5, ready: 0, terminating: 0, uncountedTerminatedPods: {} });
    assert.ok(startTime && completionTime);
    const pods = (await harness.client.list(resources.pods)).items;
    assert.equal(pods.length, 5);
    for (const pod of pods) assert.deepEqual(pod.metadata.finalizers ?? [], []);
    const messages = await harness.until("event", async () => {
      const all = await harness.messages();
      return all.includes("Completed: Job completed") ? all : undefined;
    });
    assert.equal(messages.filter((text) => text.startsWith("SuccessfulCreate: Created pod: work-")).length, 5);
  }));

test("a Job fails past its back-off limit", () =>
  withJob(makeJob({ backoffLimit: 2 }), fail, async (harness) => {
    const job = await over(harness);
    const message = "Job has reached the specified backoff limit";
    assert.deepEqual(conditions(job), [
      ["FailureTarget", "True", "BackoffLimitExceeded", message],
      ["Failed", "True", "BackoffLimitExceeded", message],
    ]);
    assert.equal(job.status?.failed, 3);
    await harness.until("event", async () => (await harness.messages()).includes(`BackoffLimitExceeded: ${message}`));
  }));

test("after a failure the next pod waits ten seconds", () =>
  withJob(
    makeJob(),
    (_, number) => (number === 0 ? failedAt(Date.now()) : undefined),
    async (harness) => {
      await harness.until(
        "it is counted",
        async () => (await harness.client.get(resources.jobs, "work", at)).status?.failed === 1,
      );
      await harness.deps.clock.sleep(50);
      assert.equal((await harness.client.list(resources.pods)).items.length, 1);
    },
  ));

test("an Indexed Job runs every index once, with its name, label, annotation, hostname and variable", () =>
  withJob(makeJob({ completions: 3, parallelism: 3, completionMode: "Indexed" }), succeed, async (harness) => {
    const job = await over(harness);
    assert.equal(job.status?.completedIndexes, "0-2");
    assert.equal(job.status?.succeeded, 3);
    const pods = (await harness.client.list(resources.pods)).items;
    const pod = pods.find(({ metadata }) => metadata.labels?.["batch.kubernetes.io/job-completion-index"] === "1")!;
    assert.match(pod.metadata.name, /^work-1-.{5}$/);
    assert.equal(pod.spec.hostname, "work-1");
    assert.equal(pod.metadata.annotations?.["batch.kubernetes.io/job-completion-index"], "1");
    assert.deepEqual(pod.spec.containers[0]!.env, [
      {
        name: "JOB_COMPLETION_INDEX",
        valueFrom: { fieldRef: { fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']" } },
      },
    ]);
  }));

test("with backoffLimitPerIndex one index fails, the others go on", () =>
  withJob(
    makeJob({ completions: 3, parallelism: 3, completionMode: "Indexed", backoffLimit: 100, backoffLimitPerIndex: 1 }),
    (pod) =>
      pod.metadata.labels?.["batch.kubernetes.io/job-completion-index"] === "1"
        ? failedAt(LONG_AGO)
        : { phase: "Succeeded" },
    async (harness) => {
      const job = await over(harness);
      assert.equal(job.status?.failedIndexes, "1");
      assert.equal(job.status?.completedIndexes, "0,2");
      assert.deepEqual(conditions(job)!.at(-1), ["Failed", "True", "FailedIndexes", "Job has failed indexes"]);
      assert.equal(job.status?.failed, 2);
    },
  ));

test("a success policy ends an Indexed Job early", () =>
  withJob(
    makeJob({
      completions: 3,
      parallelism: 3,
      completionMode: "Indexed",
      successPolicy: { rules: [{ succeededIndexes: "1" }] },
    }),
    (pod) =>
      pod.metadata.labels?.["batch.kubernetes.io/job-completion-index"] === "1" ? { phase: "Succeeded" } : undefined,
    async (harness) => {
      const job = await over(harness);
      assert.deepEqual(conditions(job), [
        ["SuccessCriteriaMet", "True", "SuccessPolicy", "Matched rules at index 0"],
        ["Complete", "True", "SuccessPolicy", "Matched rules at index 0"],
      ]);
    },
  ));

test("a pod failure policy fails a Job at once", () =>
  withJob(
    makeJob({ podFailurePolicy: { rules: [{ action: "FailJob", onExitCodes: { operator: "In", values: [42] } }] } }),
    () => failedAt(LONG_AGO, 42),
    async (harness) => {
      const job = await over(harness);
      const [pod] = (await harness.client.list(resources.pods)).items;
      const message = `Container c for pod default/${pod!.metadata.name} failed with exit code 42 matching FailJob rule at index 0`;
      assert.deepEqual(conditions(job)!.at(-1), ["Failed", "True", "PodFailurePolicy", message]);
      assert.equal(job.status?.failed, 1);
    },
  ));

test("suspending deletes the pods, resuming starts afresh", () =>
  withJob(
    makeJob({ parallelism: 2, completions: 2 }),
    () => undefined,
    async (harness) => {
      const { client, until } = harness;
      const status = async () => (await client.get(resources.jobs, "work", at)).status;
      await until("active", async () => (await status())?.active === 2);
      await client.patch(resources.jobs, "work", { type: "merge", body: { spec: { suspend: true } } }, at);
      await until("suspended", async () =>
        (await status())?.conditions?.some(({ type, status: value }) => type === "Suspended" && value === "True"),
      );
      assert.equal((await client.list(resources.pods)).items.length, 0);
      assert.equal((await status())?.startTime, undefined);
      await client.patch(resources.jobs, "work", { type: "merge", body: { spec: { suspend: false } } }, at);
      await until("resumed", async () => {
        const now = await status();
        return now?.active === 2 && now.startTime && now.conditions?.[0]?.status === "False";
      });
      assert.equal((await status())?.failed, undefined);
    },
  ));

test("activeDeadlineSeconds ends a Job", () =>
  withJob(
    makeJob({ activeDeadlineSeconds: 1 }),
    () => undefined,
    async (harness) => {
      const job = await over(harness);
      assert.deepEqual(conditions(job)!.at(-1), [
        "Failed",
        "True",
        "DeadlineExceeded",
        "Job was active longer than specified deadline",
      ]);
      assert.equal(
        (await harness.client.list(resources.pods)).items.filter(({ metadata }) => !metadata.deletionTimestamp).length,
        0,
      );
    },
  ));

test("a Job that is deleted lets its pods go", () =>
  withJob(
    makeJob(),
    () => undefined,
    async (harness) => {
      const { client, until } = harness;
      const pod = await until("a pod", async () => (await client.list(resources.pods)).items[0]);
      await client.delete(resources.jobs, "work", at);
      await client.delete(resources.pods, pod.metadata.name, at);
      await until("the pod is gone", async () => (await client.list(resources.pods)).items.length === 0);
    },
  ));

test("indexes are written as Kubernetes writes them", () => {
  for (const text of ["", "0", "0,1", "1,3-5,7", "0-9"]) assert.equal(formatIndexes(parseIndexes(text, 100)), text);
  assert.deepEqual([...parseIndexes("1-5", 3)], [1, 2]);
});

test("policies match as documented", () => {
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace: "n" },
    spec: { containers: [] },
    status: failedAt(0, 3),
  } as Pod;
  const rule = (operator: string, values: number[], action: string) => ({
    rules: [{ action, onExitCodes: { operator, values } }],
  });
  assert.equal(matchFailurePolicy(rule("In", [3], "Ignore"), pod).counts, false);
  assert.equal(matchFailurePolicy(rule("NotIn", [3], "Ignore"), pod).counts, true);
  assert.equal(matchFailurePolicy(rule("NotIn", [4], "FailIndex"), pod).action, "FailIndex");
  const disrupted = deepClone(pod) as Pod;
  disrupted.status!.conditions = [{ type: "DisruptionTarget", status: "True" }];
  const match = matchFailurePolicy(
    { rules: [{ action: "FailJob", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] }] },
    disrupted,
  );
  assert.equal(match.message, "Pod n/p has condition DisruptionTarget matching FailJob rule at index 0");
  assert.equal(
    matchSuccessPolicy({ rules: [{ succeededIndexes: "0-4", succeededCount: 2 }] }, 5, new Set([0])),
    undefined,
  );
  assert.equal(
    matchSuccessPolicy({ rules: [{ succeededIndexes: "0-4", succeededCount: 2 }] }, 5, new Set([0, 4])),
    "Matched rules at index 0",
  );
});
