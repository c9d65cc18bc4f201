import assert from "node:assert/strict";
import test from "node:test";
import { createScheme, type Pod, type StatusError } from "#kinds";
import type { AdmissionAttributes, Reader } from "../ports.ts";
import { createDefaultTolerationSeconds } from "./default-toleration-seconds.ts";
import { createPriority } from "./priority.ts";

const kind = createScheme().byKind("v1", "Pod")!;
const classes = [
  { metadata: { name: "high" }, value: 1000, preemptionPolicy: "Never" },
  { metadata: { name: "usual" }, value: 5, globalDefault: true },
  { metadata: { name: "other" }, value: 7, globalDefault: true },
];
const reader = (list: object[]) =>
  ({
    get: (_: unknown, __: unknown, name: string) => list.find((one: any) => one.metadata.name === name),
    list: () => list,
  }) as unknown as Reader;

function admit(plugin: ReturnType<typeof createPriority>, spec: object): Pod["spec"] {
  const object = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec };
  const attributes = {
    operation: "CREATE",
    kind,
    subresource: "",
    namespace: "n",
    name: "p",
    object,
  } as unknown as AdmissionAttributes;
  assert.equal(plugin.handles(attributes), true);
  plugin.admit!(attributes);
  return (object as unknown as Pod).spec;
}

test("a pod gets the priority of its class, of the lowest default, or 0", () => {
  const plugin = createPriority({ reader: reader(classes) });
  assert.deepEqual(admit(plugin, { priorityClassName: "high" }), {
    priorityClassName: "high",
    priority: 1000,
    preemptionPolicy: "Never",
  });
  assert.deepEqual(admit(plugin, {}), {
    priorityClassName: "usual",
    priority: 5,
    preemptionPolicy: "PreemptLowerPriority",
  });
  assert.deepEqual(admit(createPriority({ reader: reader([]) }), {}), {
    priority: 0,
    preemptionPolicy: "PreemptLowerPriority",
  });
});

test("a class that is not there and a number of one's own are refused", () => {
  const plugin = createPriority({ reader: reader(classes) });
  const message = (spec: object) => {
    try {
      admit(plugin, spec);
    } catch (error) {
      return (error as StatusError).message;
    }
    return "";
  };
  assert.equal(
    message({ priorityClassName: "none" }),
    'pods "p" is forbidden: no PriorityClass with name none was found',
  );
  assert.match(
    message({ priorityClassName: "high", priority: 3 }),
    /^pods "p" is forbidden: the integer value of priority \(3\) must not be provided/,
  );
});

test("a pod tolerates a lost node for five minutes unless it says otherwise", () => {
  const both = ["not-ready", "unreachable"].map((name) => ({
    key: `node.kubernetes.io/${name}`,
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds: 300,
  }));
  const plugin = createDefaultTolerationSeconds();
  assert.deepEqual(admit(plugin, {})?.tolerations, both);
  const own = { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 10 };
  assert.deepEqual(admit(plugin, { tolerations: [own] })?.tolerations, [own, both[1]]);
  assert.deepEqual(admit(plugin, { tolerations: [{ operator: "Exists" }] })?.tolerations, [{ operator: "Exists" }]);
});
