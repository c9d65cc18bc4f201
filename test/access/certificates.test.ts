import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { after, before, test } from "node:test";
import { systemClock, silentLogger, systemRandom } from "#base";
import { loadOrCreatePki, parseCertificateRequest, serviceAccountUser } from "#apiserver";
import { type Client, createRecorder } from "#client";
import { startControllers } from "#controllers";
import { type CertificateSigningRequest, resources, type UserInfo } from "#kinds";
import { createCertificateSigner } from "../../src/cluster/certificate-signer.ts";
import { until } from "../support/instance.ts";
import { type AccessPlane, binding, clusterRole, nodeNamed, startAccessPlane } from "./plane.test-support.ts";

let access: AccessPlane;
const stack = new AsyncDisposableStack();
before(async () => {
  access = stack.use(await startAccessPlane());
  const { plane } = access;
  const pki = loadOrCreatePki(undefined, { clock: systemClock });
  const deps = { clock: systemClock, random: systemRandom, logger: silentLogger };
  const acting = (client: Client) => ({
    client,
    recorder: (component: string) => createRecorder({ ...deps, client }, { component }),
  });
  const controllers = stack.use(
    startControllers(
      { ...deps, ...acting(access.admin), informers: stack.use(plane.informersOf(access.admin)) },
      {
        which: ["certificate", "serviceaccount-token"],
        rootCA: pki.caCertificate,
        signToken: plane.tokens.legacyToken,
        certificates: createCertificateSigner({ clock: systemClock }, pki.ca),
        identity: (account) =>
          acting(plane.clientAs(serviceAccountUser("kube-system", account), "kube-controller-manager")),
      },
    ),
  );
  await controllers.started;
});
after(() => stack.disposeAsync());

function requestFor(subject: string, ...more: string[]): string {
  const pem = execFileSync(
    "openssl",
    [
      "req",
      "-new",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-keyout",
      "/dev/null",
      "-subj",
      subject,
      ...more,
    ],
    { stdio: ["ignore", "pipe", "ignore"] },
  );
  return pem.toString("base64");
}

const csr = (
  name: string,
  request: string,
  signerName: string,
  usages: string[],
  expirationSeconds = 3600,
): CertificateSigningRequest =>
  ({
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { name },
    spec: { request, signerName, usages, expirationSeconds },
  }) as never;
const create = (object: CertificateSigningRequest, user?: UserInfo) =>
  (user ? access.as(user) : access.admin).create(resources.certificateSigningRequests, object);
const get = (name: string) => access.admin.get(resources.certificateSigningRequests, name);
const approve = async (name: string, client = access.admin) => {
  const found = (await get(name)) as CertificateSigningRequest;
  const conditions = [{ type: "Approved", status: "True" as const, reason: "Test" }];
  return client.update(
    resources.certificateSigningRequests,
    { ...found, status: { ...found.status, conditions } },
    { subresource: "approval" },
  );
};
const CLIENT = "kubernetes.io/kube-apiserver-client";

test("a request is read: subject, names, key; a forged one is refused", () => {
  const parsed = parseCertificateRequest(
    requestFor("/O=a/O=b/CN=c", "-addext", "subjectAltName=DNS:x.y,IP:10.0.0.1,IP:fd00::1,email:a@b"),
  );
  assert.partialDeepStrictEqual(parsed, {
    commonName: "c",
    organizations: ["a", "b"],
    dnsNames: ["x.y"],
    ipAddresses: ["10.0.0.1", "fd00:0:0:0:0:0:0:1"],
    otherNames: ["a@b"],
  });
  const pem = Buffer.from(requestFor("/CN=c"), "base64").toString();
  const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ""), "base64");
  der[30]! ^= 1;
  const forged = `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString("base64")}\n-----END CERTIFICATE REQUEST-----\n`;
  assert.throws(() => parseCertificateRequest(Buffer.from(forged).toString("base64")));
});

test("what is approved is signed, for as long as it asks, and only who may approve does", async () => {
  await create(csr("jane", requestFor("/O=devs/CN=jane"), CLIENT, ["client auth"]));
  assert.partialDeepStrictEqual((await get("jane")).spec, {
    username: "admin",
    groups: ["system:masters", "system:authenticated"],
  });
  const rights = {
    apiGroups: ["certificates.k8s.io"],
    resources: ["certificatesigningrequests/approval", "certificatesigningrequests/status"],
    verbs: ["update"],
  };
  await access.admin.create(resources.clusterRoles, clusterRole("upd", rights));
  await access.admin.create(
    resources.clusterRoleBindings,
    binding("ClusterRoleBinding", { name: "upd" }, "ClusterRole/upd", "User/upd"),
  );
  assert.equal(
    await access.refusal(approve("jane", access.as("upd"))),
    `certificatesigningrequests.certificates.k8s.io "jane" is forbidden: user not permitted to approve requests with signerName "${CLIENT}"`,
  );
  await approve("jane");
  await until(async () => Boolean((await get("jane")).status?.certificate), "the certificate");
  const signed = new X509Certificate(Buffer.from((await get("jane")).status!.certificate!, "base64"));
  assert.equal(signed.subject, "O=devs\nCN=jane");
  assert.equal(signed.validToDate.getTime() - signed.validFromDate.getTime(), 3_600_000);
  assert.deepEqual(signed.keyUsage, ["1.3.6.1.5.5.7.3.2"]);
});

test("a kubelet's own client certificate is approved by itself; what a signer won't sign fails", async () => {
  const rights = {
    apiGroups: ["certificates.k8s.io"],
    resources: ["certificatesigningrequests/selfnodeclient"],
    verbs: ["create"],
  };
  await access.admin.create(resources.clusterRoles, clusterRole("self", rights));
  await access.admin.create(
    resources.clusterRoleBindings,
    binding("ClusterRoleBinding", { name: "self" }, "ClusterRole/self", "Group/system:nodes"),
  );
  const kubelet = csr("node", requestFor("/O=system:nodes/CN=system:node:n1"), `${CLIENT}-kubelet`, [
    "client auth",
    "digital signature",
  ]);
  await create(kubelet, nodeNamed("n1"));
  await until(async () => Boolean((await get("node")).status?.certificate), "the node's certificate");
  assert.equal(
    (await get("node")).status?.conditions?.[0]?.message,
    "Auto approving self kubelet client certificate after SubjectAccessReview.",
  );
  await create(csr("wrong", requestFor("/CN=x"), CLIENT, ["server auth"]));
  await approve("wrong");
  await until(async () => (await get("wrong")).status?.conditions?.length === 2, "the failure");
  assert.partialDeepStrictEqual((await get("wrong")).status?.conditions?.[1], {
    type: "Failed",
    reason: "SignerValidationFailure",
  });
});

test("requests are validated; nobody becomes a master by one", async () => {
  const { refusal } = access;
  const invalid = 'CertificateSigningRequest.certificates.k8s.io "bad" is invalid: ';
  const request = requestFor("/CN=x");
  assert.equal(
    await refusal(create(csr("bad", request, "foo", ["client auth"]))),
    `${invalid}spec.signerName: Invalid value: "foo": must be a fully qualified domain and path of the form 'example.com/signer-name'`,
  );
  assert.equal(
    await refusal(create(csr("bad", request, CLIENT, [], 5))),
    `${invalid}[spec.usages: Required value, spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 600 seconds (10 minutes)]`,
  );
  assert.equal(
    await refusal(create(csr("bad", requestFor("/O=system:masters/CN=x"), CLIENT, ["client auth"]))),
    `certificatesigningrequests.certificates.k8s.io "bad" is forbidden: use of ${CLIENT} signer with system:masters group is not allowed`,
  );
});

test("a Secret for a ServiceAccount's token is filled, good while it is there, and goes with the account", async () => {
  const { admin, plane } = access;
  const at = { namespace: "default" };
  const metadata = { name: "tok", ...at, annotations: { "kubernetes.io/service-account.name": "default" } };
  await admin.create(resources.secrets, {
    apiVersion: "v1",
    kind: "Secret",
    type: "kubernetes.io/service-account-token",
    metadata,
  } as never);
  await until(async () => Boolean((await admin.get(resources.secrets, "tok", at)).data?.token), "the token");
  const { data } = await admin.get(resources.secrets, "tok", at);
  assert.deepEqual(Object.keys(data ?? {}).sort(), ["ca.crt", "namespace", "token"]);
  const token = Buffer.from(data!.token!, "base64").toString();
  assert.equal(plane.tokens.authenticator.authenticate(token)?.username, "system:serviceaccount:default:default");
  await admin.delete(resources.serviceAccounts, "default", at);
  await until(async () => (await admin.list(resources.secrets, at)).items.length === 0, "the Secret's end");
  assert.throws(() => plane.tokens.authenticator.authenticate(token), /has been invalidated/);
});
