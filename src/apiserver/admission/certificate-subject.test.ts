import assert from "node:assert/strict";
import { test } from "node:test";
import { resources } from "#kinds";
import { createCertificateSubjectRestriction } from "./certificate-subject.ts";
import { attributesOf, run } from "./fixture.ts";

/** `O=system:masters,CN=x` */
const MASTERS =
  "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIaE1JR0hBZ0VBTUNVeEZ6QVZCZ05WQkFvTURuTjVjM1JsYlRwdFlYTjBaWEp6TVFvd0NBWURWUVFEREFGNApNRmt3RXdZSEtvWkl6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUVFcm9kRUZpUUZrSVY5QTJwSVVxSDBWTmhBUkZOCjlZNE40WkRtYVVpRVQ3N1hldnpSTU1uN0hZb3ZYWTFLQ1ZPbUcvSDJaVFgxTzJNRkNVdXZjd2JYbTZBQU1Bb0cKQ0NxR1NNNDlCQU1DQTBrQU1FWUNJUUNSY0RDdzNhTmRmaGF3RTFmQk4yNlVjOTAvWEVRYUpCVVBMNFZ4WktVWgpPZ0loQUlzeEZjQ2FRZEdrbGIwTEN6cno5YllaWllvNTBKS1lQYkl3VEw0ZFFCa0QKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";
/** `O=others,CN=x` */
const OTHERS =
  "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1IOENBUUF3SFRFUE1BMEdBMVVFQ2d3R2IzUm9aWEp6TVFvd0NBWURWUVFEREFGNE1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUVhV1VXMHZSb1BEcjF5b2VJNHQ3RVhRK1ZrL1NnVFc0RkJCOHY5dHorCitDVFdBa3krNjQ5WG9GTTd3aEY2V1U0TlhOMGRYTmhTcC8xSzhXZlJXUmtxRmFBQU1Bb0dDQ3FHU000OUJBTUMKQTBnQU1FVUNJUUNCeDhic3V4T2pENGZhb29EQTRqRkZjV3psdVBJQzByRGJMaXd0RG1YNVVRSWdIdWx5anBldgo3bzVEVzhhRnh1bGhxSTN2VVp1OW43TitJbkRlNCtrV0xwZz0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

const create = (signerName: string, request: string) => {
  const object = { metadata: { name: "csr" }, spec: { signerName, usages: ["client auth"], request } };
  return run(createCertificateSubjectRestriction(), attributesOf(resources.certificateSigningRequests, { object }));
};

test("a client certificate of system:masters is not asked for", async () => {
  await assert.rejects(create("kubernetes.io/kube-apiserver-client", MASTERS), {
    message:
      'certificatesigningrequests.certificates.k8s.io "csr" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
  });
  await create("kubernetes.io/kube-apiserver-client", OTHERS);
  await create("example.com/own", MASTERS);
});
