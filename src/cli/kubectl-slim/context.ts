import type { Client, Discovery, HttpTransport, PodStreams } from "#client";
import type { Environment } from "./environment.ts";
import type { Flags, FlagSpec } from "./flags.ts";

/** What a command works with. */
export interface Context {
  readonly environment: Environment;
  readonly flags: Flags;
  readonly args: readonly string[];
  /** How many of the arguments stood before `--`. */
  readonly dash: number | undefined;
  /** `kubectl get` */
  readonly command: string;
  readonly client: Client;
  readonly transport: HttpTransport;
  readonly discovery: Discovery;
  readonly streams: PodStreams;
  /** Of `--namespace`, else of the kubeconfig's context. */
  readonly namespace: string;
  readonly namespaceGiven: boolean;
  /** The server's address, for messages. */
  readonly server: string;
  out(text: string): void;
  err(text: string): void;
}

/** One command: its flags besides the global ones, and what it does. */
export interface CommandSpec {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** `get [(-o|--output=)json|yaml|…] (TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE/NAME ...)` */
  readonly usage: string;
  readonly short: string;
  readonly flags?: readonly FlagSpec[];
  readonly subcommands?: readonly CommandSpec[];
  /** Works without a server. */
  readonly offline?: boolean;
  run?(context: Context): Promise<void>;
}

export const flag = (name: string, type: FlagSpec["type"], usage: string, more: Partial<FlagSpec> = {}): FlagSpec => ({
  name,
  type,
  usage,
  ...more,
});

export const SELECTOR: FlagSpec = flag("selector", "string", "label query", { short: "l" });
export const FIELD_SELECTOR: FlagSpec = flag("field-selector", "string", "field query");
export const ALL_NAMESPACES: FlagSpec = flag("all-namespaces", "bool", "all namespaces", { short: "A" });
export const OUTPUT: FlagSpec = flag("output", "string", "json, yaml, name, jsonpath=…, custom-columns=…, wide", {
  short: "o",
});
export const FILENAME: FlagSpec = flag("filename", "list", "file, directory or URL", { short: "f" });
export const RECURSIVE: FlagSpec = flag("recursive", "bool", "directories with what is below them", { short: "R" });
export const DRY_RUN: FlagSpec = flag("dry-run", "string", "none, client or server", {
  default: "none",
  bare: "unchanged",
});
export const SHOW_MANAGED: FlagSpec = flag("show-managed-fields", "bool", "keep managedFields");
export const TEMPLATE: FlagSpec = flag("template", "string", "template of -o jsonpath");
export const TIMEOUT: FlagSpec = flag("timeout", "duration", "how long to wait");
export const FIELD_MANAGER = (value: string): FlagSpec =>
  flag("field-manager", "string", "owner of the fields", { default: value });
