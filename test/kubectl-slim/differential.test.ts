import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startInstance, type TestInstance, until } from "../support/instance.ts";
import { kubectl, kubectlSlim, masked, type Outcome } from "./support.ts";

const lines = readFileSync(join(import.meta.dirname, "commands.txt"), "utf8")
  .split("\n")
  .filter((line) => line && !line.startsWith("#"));

/** Events of one second have no order, and kubectl sorts them by an unstable rule; of several logs any may come first. */
const UNORDERED = /^(events|describe (node|pod)|logs -l)/;

let instance: TestInstance;
let env: NodeJS.ProcessEnv;

before(async () => {
  instance = await startInstance();
  env = { ...process.env, KUBECONFIG: instance.kubeconfig };
  await instance.kubectl("apply", "-f", join(import.meta.dirname, "fixtures.yaml"));
  for (const what of ["deployment/web", "statefulset/db", "daemonset/agent"])
    await instance.kubectl("rollout", "status", what, "--timeout=60s");
  await instance.kubectl("wait", "job/once", "--for=condition=complete", "--timeout=60s");
  await until(
    async () => (await instance.kubectl("get", "pod", "broken")).includes("ErrImageNeverPull"),
    "the pod that can't start",
  );
});
after(() => instance?.[Symbol.asyncDispose]());

const shown = ({ code, stdout, stderr }: Outcome, unordered: boolean) => {
  const text = masked(`${stdout}\n-- stderr\n${stderr}`);
  // counts that went up between the two make columns wider
  const loose = () => text.replace(/ {2,}/g, "  ").split("\n").sort().join("\n");
  return `exit code ${code}\n${unordered ? loose() : text}`;
};

for (const line of lines) {
  test(`kubectl ${line}`, async () => {
    const args = line.split(" ").map((word) => word.replaceAll("\\u0020", " "));
    // one after the other: what the first changes, the second finds
    const expected = await kubectl(args, env);
    const actual = await kubectlSlim(args, env);
    const unordered = UNORDERED.test(line);
    assert.equal(shown(actual, unordered), shown(expected, unordered));
  });
}
