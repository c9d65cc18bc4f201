import assert from "node:assert/strict";
import test from "node:test";
import { errorsOf } from "../support/errors-of.ts";

// Every message here is what kube-apiserver v1.36 answers.

const hook = (changes: object) => ({
  webhooks: [
    {
      name: "w.a.b",
      clientConfig: { service: { namespace: "n", name: "s" } },
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
      ...changes,
    },
  ],
});
const rule = (changes: object) =>
  hook({ rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"], ...changes }] });
const at = "webhooks[0]";

const WEBHOOKS: readonly (readonly [object: object, ...errors: string[]])[] = [
  [rule({})],
  [
    { webhooks: [{}] },
    `${at}.name: Required value`,
    `${at}.sideEffects: Required value: must specify one of None, NoneOnDryRun`,
    `${at}.clientConfig: Required value: exactly one of url or service is required`,
    `${at}.admissionReviewVersions: Required value: must specify one of v1, v1beta1`,
  ],
  [
    hook({ name: "a.b" }),
    `${at}.name: Invalid value: "a.b": should be a domain with at least three segments separated by dots`,
  ],
  [
    hook({ clientConfig: { url: "x" } }),
    `${at}.clientConfig.url: Invalid value: "": 'https' is the only allowed URL scheme; desired format: https://host[/path]`,
    `${at}.clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]`,
  ],
  [
    hook({ clientConfig: { url: "https://u:p@a/b?c=d#e" } }),
    `${at}.clientConfig.url: Invalid value: "u:p": user information is not permitted in the URL`,
    `${at}.clientConfig.url: Invalid value: "e": fragments are not permitted in the URL`,
    `${at}.clientConfig.url: Invalid value: "c=d": query parameters are not permitted in the URL`,
  ],
  [
    hook({ clientConfig: { service: { namespace: "n", name: "s", path: "p" } } }),
    `${at}.clientConfig.service.path: Invalid value: "p": must start with a '/'`,
    `${at}.clientConfig.service.path: Invalid value: "p": segment[0] may not be empty`,
  ],
  [
    hook({ clientConfig: { service: { namespace: "n", name: "" } } }),
    `${at}.clientConfig.service.namespace: Required value`,
  ],
  [
    hook({ timeoutSeconds: 31 }),
    `${at}.timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds`,
  ],
  [
    hook({ admissionReviewVersions: ["v2"] }),
    `${at}.admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1`,
  ],
  [
    rule({ resources: ["*/*", "pods"] }),
    `${at}.rules[0].resources: Invalid value: ["*/*","pods"]: if '*/*' is present, must not specify other resources`,
  ],
  [
    rule({ resources: ["pods/*", "pods/status"] }),
    `${at}.rules[0].resources[1]: Invalid value: "pods/status": if 'pods/*' is present, must not specify pods/status`,
  ],
  [
    rule({ operations: ["*", "CREATE"], scope: "x" }),
    `${at}.rules[0].operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations`,
    `${at}.rules[0].scope: Unsupported value: "x": supported values: "*", "Cluster", "Namespaced"`,
  ],
];

for (const [object, ...errors] of WEBHOOKS)
  test(`webhook ${JSON.stringify(object)}`, () =>
    assert.deepEqual(errorsOf("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", object), errors));

test("a policy binding says what happens", () =>
  assert.deepEqual(
    errorsOf("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", {
      spec: { policyName: "p", paramRef: { name: "a", selector: {} }, validationActions: ["Deny", "Warn"] },
    }),
    [
      "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
      "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
      "spec.paramRef.parameterNotFoundAction: Required value",
      'spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)',
    ],
  ));
