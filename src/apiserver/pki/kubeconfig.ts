import { writePrivateFile } from "./files.ts";

export interface KubeconfigOptions {
  /** `https://127.0.0.1:6443` */
  readonly server: string;
  /** PEM. */
  readonly caCertificate: string;
  /** PEM pair of the user, or a bearer token. */
  readonly user: { readonly cert: string; readonly key: string } | { readonly token: string };
  /** Name of cluster, context and user entries. Default `slim`. */
  readonly name?: string;
  readonly namespace?: string;
}

/**
 * The text of a kubeconfig with all data embedded.
 * @see https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
 */
export function kubeconfig(options: KubeconfigOptions): string {
  const name = JSON.stringify(options.name ?? "slim");
  const user =
    "token" in options.user
      ? [`    token: ${JSON.stringify(options.user.token)}`]
      : [
          `    client-certificate-data: ${base64(options.user.cert)}`,
          `    client-key-data: ${base64(options.user.key)}`,
        ];
  return [
    "apiVersion: v1",
    "kind: Config",
    "clusters:",
    `- name: ${name}`,
    "  cluster:",
    `    server: ${JSON.stringify(options.server)}`,
    `    certificate-authority-data: ${base64(options.caCertificate)}`,
    "contexts:",
    `- name: ${name}`,
    "  context:",
    `    cluster: ${name}`,
    `    user: ${name}`,
    ...(options.namespace ? [`    namespace: ${JSON.stringify(options.namespace)}`] : []),
    `current-context: ${name}`,
    "users:",
    `- name: ${name}`,
    "  user:",
    ...user,
    "",
  ].join("\n");
}

/** Writes the kubeconfig with mode 0600, atomically. */
export function writeKubeconfig(path: string, options: KubeconfigOptions): void {
  writePrivateFile(path, kubeconfig(options));
}

const base64 = (text: string) => Buffer.from(text).toString("base64");
