import { type ApiRequest, failure } from "#kinds";

export type Shape = "object" | "table" | "metadata";

/** What form of the answer the client takes first of those that there are. */
export interface Accepted {
  readonly shape: Shape;
  readonly format: "json" | "yaml";
  /** Version of meta.k8s.io for tables and metadata: `v1`, `v1beta1`. */
  readonly metaVersion: string;
  readonly pretty: boolean;
}

const PLAIN: Accepted = { shape: "object", format: "json", metaVersion: "v1", pretty: false };

/** Reads the Accept header; the first entry that can be served decides. @throws StatusError 406 */
export function acceptOf(request: ApiRequest): Accepted {
  const header = request.headers.accept;
  if (!header || header === "application/json" || header === "*/*") return PLAIN;
  for (const entry of header.split(",")) {
    const accepted = entryOf(entry);
    if (accepted) return accepted;
  }
  throw failure(
    406,
    "NotAcceptable",
    "only the following media types are accepted: application/json, application/yaml",
  );
}

function entryOf(entry: string): Accepted | undefined {
  const [type = "", ...parameters] = entry.split(";").map((part) => part.trim());
  const format =
    type === "application/yaml"
      ? "yaml"
      : ["application/json", "*/*", "application/*"].includes(type)
        ? "json"
        : undefined;
  if (!format) return undefined;
  const values = new Map(parameters.map((part) => part.split("=", 2) as [string, string]));
  const as = values.get("as");
  if (as === undefined) return { ...PLAIN, format };
  if (values.get("g") !== "meta.k8s.io") return undefined;
  const metaVersion = values.get("v") ?? "v1";
  if (metaVersion !== "v1" && metaVersion !== "v1beta1") return undefined;
  if (as === "Table") return { ...PLAIN, format, shape: "table", metaVersion };
  if (as === "PartialObjectMetadata" || as === "PartialObjectMetadataList")
    return { ...PLAIN, format, shape: "metadata", metaVersion };
  return undefined;
}
