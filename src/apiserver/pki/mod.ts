export { parseCertificateRequest, type ParsedRequest } from "./certificate-request.ts";
export {
  addressBytes,
  type CertificateRequest,
  issueCertificate,
  type KeyPair,
  newKey,
  type Subject,
} from "./certificate.ts";
export { kubeconfig, type KubeconfigOptions, writeKubeconfig } from "./kubeconfig.ts";
export { writePrivateFile } from "./files.ts";
export { loadOrCreatePki, type Pki, type PkiOptions } from "./pki.ts";
