import { createHash, X509Certificate } from "node:crypto";
import { connect } from "node:tls";
import { CodedError } from "#base";

/**
 * The certificate authority of a server (PEM), taken from the server itself and believed because its print was told by who made
 * the token. @throws CodedError `untrusted` when the server shows another one
 */
export async function fetchAuthority(server: string, hash: string): Promise<string> {
  const { hostname, port } = new URL(server);
  const host = hostname.replace(/^\[|\]$/g, "");
  const chain = await new Promise<Buffer[]>((resolve, reject) => {
    // nothing is sent on this connection: what it shows is looked at, and that is all
    const socket = connect(
      { host, port: Number(port || 443), servername: "kubernetes", rejectUnauthorized: false },
      () => {
        const found: Buffer[] = [];
        let certificate = socket.getPeerCertificate(true);
        while (certificate?.raw && !found.some((raw) => raw.equals(certificate.raw))) {
          found.push(certificate.raw);
          certificate = certificate.issuerCertificate;
        }
        socket.destroy();
        resolve(found);
      },
    );
    socket.once("error", (cause) =>
      reject(new CodedError("unreachable", `Unable to connect to the server: ${cause.message}`, { cause })),
    );
  });
  const authority = chain.find((raw) => createHash("sha256").update(raw).digest("hex") === hash);
  if (!authority)
    throw new CodedError("untrusted", `${server} does not show the certificate authority that the token names`, {
      hint: "Another server answers there, or the instance was made anew: take a new token with `slim token`.",
    });
  return new X509Certificate(authority).toString();
}
