import assert from "node:assert/strict";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { issueCertificate, newKey } from "../../src/apiserver/pki/certificate.ts";
import { dialTcp } from "../../src/kubelet/probes/dial.ts";
import { httpTarget, probeHttp } from "../../src/kubelet/probes/http.ts";

test("an HTTPS probe takes any certificate: of another name, signed by itself, out of date", async (t) => {
  const { key, publicKey } = newKey();
  const cert = issueCertificate(
    {
      subject: { commonName: "somebody.example" },
      publicKey,
      names: ["somebody.example"],
      notBefore: Date.UTC(2001, 0, 1),
      notAfter: Date.UTC(2002, 0, 1),
      usages: ["digital signature", "server auth"],
    },
    { selfKey: key },
  );
  const server = createServer({ key, cert }, (_request, response) => response.end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const target = httpTarget({ scheme: "HTTPS", port }, port, "127.0.0.1", "probe");
  assert.deepEqual(await probeHttp(dialTcp, target, new AbortController().signal), { result: "success" });
});
