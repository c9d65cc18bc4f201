import { type ApiRequest, failure, type StatusError } from "#kinds";

export type Shape = "object" | "table" | "metadata";

/** What form of the answer the client takes first of those that there are. */
export interface Accepted {
  readonly shape: Shape;
  readonly format: "json" | "yaml";
  /** Version of meta.k8s.io for tables and metadata: `v1`, `v1beta1`. */
  readonly metaVersion: string;
  /** `PartialObjectMetadata` was asked for where a list of them would be `PartialObjectMetadataList`. */
  readonly single: boolean;
}

const PLAIN: Accepted = { shape: "object", format: "json", metaVersion: "v1", single: false };
const PROTOBUF = "application/vnd.kubernetes.protobuf";
const TYPES = ["application/json", "application/yaml", PROTOBUF];
const STREAMS = ["application/json;stream=watch", `${PROTOBUF};stream=watch`];
const FORMATS: Readonly<Record<string, Accepted["format"]>> = {
  "application/json": "json",
  "application/yaml": "yaml",
  "*/*": "json",
};

/** What kind of path is answered, for the words of a refusal. */
export interface AcceptPlace {
  readonly collection: boolean;
  readonly watch: boolean;
  /** Whether the kind can be shown as a Table or by its metadata alone. */
  readonly shaped: boolean;
}

/**
 * Reads the Accept header; of what can be served, the entry that the client prefers decides. Clients that speak protobuf get
 * JSON, which they take besides.
 * @throws StatusError 406
 */
export function acceptOf(request: ApiRequest, place?: AcceptPlace): Accepted {
  const header = request.headers.accept;
  if (!header || header === "application/json" || header === "*/*") return PLAIN;
  const entries = header.split(",").map(entryOf);
  const usable = entries.filter(({ type }) => type in FORMATS);
  if (usable.length === 0 && !entries.some(({ type }) => type === PROTOBUF)) throw notAcceptable(place);
  // stable: of two that are as welcome, the first
  for (const entry of usable.sort((a, b) => b.quality - a.quality)) {
    const accepted = shapeOf(entry);
    if (accepted?.format === "yaml" && place?.watch) continue;
    if (accepted && accepted.shape !== "object" && place?.shaped === false) continue;
    if (accepted) return accepted;
  }
  const types = place?.watch && usable.every(({ type }) => FORMATS[type] === "yaml") ? STREAMS : TYPES;
  throw failure(406, "NotAcceptable", `only the following media types are accepted: ${types.join(", ")}`);
}

/** The format of an error, which any client must be able to read. */
export function errorFormatOf(request: ApiRequest): "json" | "yaml" {
  try {
    return acceptOf(request).format;
  } catch {
    return "json";
  }
}

function notAcceptable(place: AcceptPlace | undefined): StatusError {
  const types = place?.collection ? [...TYPES, ...STREAMS] : TYPES;
  return failure(406, "NotAcceptable", `406: Not Acceptable\n\nAvailable representations: ${types.join(", ")}`, {});
}

interface Entry {
  readonly type: string;
  readonly quality: number;
  readonly parameters: ReadonlyMap<string, string>;
}

function entryOf(text: string): Entry {
  const [type = "", ...rest] = text.split(";").map((part) => part.trim());
  const parameters = new Map(rest.map((part) => part.split("=", 2) as [string, string]));
  return { type, parameters, quality: Number(parameters.get("q") ?? 1) };
}

function shapeOf({ type, parameters }: Entry): Accepted | undefined {
  const format = FORMATS[type]!;
  const as = parameters.get("as");
  if (as === undefined) return { ...PLAIN, format };
  if (parameters.get("g") !== "meta.k8s.io") return undefined;
  const metaVersion = parameters.get("v") ?? "v1";
  if (metaVersion !== "v1" && metaVersion !== "v1beta1") return undefined;
  if (as === "Table") return { ...PLAIN, format, shape: "table", metaVersion };
  if (as === "PartialObjectMetadata") return { format, shape: "metadata", metaVersion, single: true };
  if (as === "PartialObjectMetadataList") return { format, shape: "metadata", metaVersion, single: false };
  return undefined;
}
