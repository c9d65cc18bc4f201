import type { SandboxConfig } from "../../port.ts";
import type { CNINetwork } from "./cni.ts";

/** What a network driver remembers of a sandbox, as JSON in the sandbox's record. */
export type Attachment =
  | { readonly kind: "routed"; readonly link: string }
  | {
      readonly kind: "cni";
      /** As it was at the ADD: the DEL must be asked of the same plugins. */
      readonly network: CNINetwork;
      readonly runtimeConfig: Readonly<Record<string, unknown>>;
      readonly result: unknown;
    };

/** Connects network namespaces of sandboxes; one driver an engine. */
export interface PodNetwork {
  /** True: what `attach` takes lies outside of this host's kernel, so a sandbox must be on record before it. */
  readonly needsRecord: boolean;
  /** Prepares the host; called once, before anything else. */
  start(): Promise<void>;
  /** Connects the namespace that is pinned at `netns`. Undoes its half-made work when it fails. */
  attach(
    sandboxId: string,
    netns: string,
    config: SandboxConfig,
  ): Promise<{ ips: readonly string[]; attachment: Attachment }>;
  /** The same sandbox in an earlier run of this process. */
  adopt(sandbox: { id: string; ips: readonly string[]; attachment: Attachment; config: SandboxConfig }): void;
  /** Disconnects it; succeeds when that was done before. `netns` still exists. */
  detach(sandbox: {
    id: string;
    ips: readonly string[];
    attachment: Attachment;
    config: SandboxConfig;
    netns: string;
  }): Promise<void>;
  /** Removes everything that it ever put on the host. */
  purge(): Promise<void>;
}
