import type { Container, LabelSelector } from "../generated/types.ts";
import type { ApiObject } from "../object.ts";
import type { Column } from "../scheme.ts";
import { formatSelector } from "../selector.ts";
import { humanDuration } from "./human-duration.ts";

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  Name: "Name of the object, unique in its namespace",
  Age: "Time since the object was created",
  "Created At": "When the object was created, RFC 3339, UTC",
  Containers: "Names of the containers of the pod template",
  Images: "Images of the containers of the pod template",
  Selector: "Selector of the pods",
  Status: "What state the object is in",
};

interface ColumnOptions {
  type?: Column["type"];
  format?: string;
  description?: string;
  /** Shown only with `-o wide`. */
  wide?: boolean;
}

/** A column of objects of type `T`; a string unless `options` say otherwise. */
export function column<T = ApiObject>(
  name: string,
  cell: (object: T, now: number) => unknown,
  options: ColumnOptions = {},
): Column {
  return {
    name,
    type: options.type ?? "string",
    format: options.format ?? "",
    description: options.description ?? DESCRIPTIONS[name] ?? "",
    priority: options.wide ? 1 : 0,
    cell: cell as unknown as Column["cell"],
  };
}

export const nameColumn: Column = column("Name", (object) => object.metadata.name, { format: "name" });
export const ageColumn: Column = column("Age", (object, now) => since(object.metadata.creationTimestamp, now));

/** What kinds without columns of their own have. */
export const defaultColumns: readonly Column[] = [
  nameColumn,
  column("Created At", (object) => object.metadata.creationTimestamp ?? "", { type: "date" }),
];

/** Time from an RFC 3339 timestamp to `now`. */
export function since(timestamp: string | null | undefined, now: number): string {
  return timestamp ? humanDuration(now - Date.parse(timestamp)) : "<unknown>";
}

export const containerNames = (containers: readonly Container[] | null | undefined): string =>
  (containers ?? []).map(({ name }) => name).join(",");
export const containerImages = (containers: readonly Container[] | null | undefined): string =>
  (containers ?? []).map(({ image }) => image ?? "").join(",");

/** `a=b,c=d` by key; `<none>` for none. */
export function formatLabels(labels: Readonly<Record<string, string>> | null | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return pairs.sort().join(",") || "<none>";
}

/** A LabelSelector's text, `<none>` for none. */
export function selectorCell(selector: LabelSelector | null | undefined): string {
  return selector ? formatSelector(selector) || "<none>" : "<none>";
}

/** The Containers, Images and Selector columns of workloads. */
export function templateColumns<T>(
  containers: (object: T) => readonly Container[] | null | undefined,
  selector?: (object: T) => string,
): Column[] {
  return [
    column<T>("Containers", (object) => containerNames(containers(object)), { wide: true }),
    column<T>("Images", (object) => containerImages(containers(object)), { wide: true }),
    ...(selector ? [column<T>("Selector", selector, { wide: true })] : []),
  ];
}

/** `a,b,c + 2 more...` */
export function shortened(items: readonly string[], max: number, none: string): string {
  if (items.length === 0) return none;
  const shown = items.slice(0, max).join(",");
  return items.length > max ? `${shown} + ${items.length - max} more...` : shown;
}
