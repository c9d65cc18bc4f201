import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../generated/types.ts";
import { prepareJob } from "./prepare.ts";

// What kube-apiserver v1.36 makes of a Job's own labels.
const GENERATED = {
  "job-name": "j",
  "batch.kubernetes.io/job-name": "j",
  "controller-uid": "u",
  "batch.kubernetes.io/controller-uid": "u",
};

test("a Job with labels of its own keeps just them, one without has those of its pods", () => {
  const labelsOf = (labels?: Record<string, string>) => {
    const job = {
      metadata: { name: "j", uid: "u", ...(labels ? { labels } : {}) },
      spec: { template: { spec: { containers: [], restartPolicy: "Never" } } },
    } as unknown as Job;
    prepareJob(job);
    assert.deepEqual(job.spec.template.metadata?.labels, GENERATED);
    return job.metadata.labels;
  };
  assert.deepEqual(labelsOf({ a: "1" }), { a: "1" });
  assert.deepEqual(labelsOf(), GENERATED);
});
