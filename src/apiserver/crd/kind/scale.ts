import {
  type ApiObject,
  type CustomResourceSubresourceScale,
  type FieldError,
  fieldError,
  type KindInfo,
} from "#kinds";
import { type Fields, isFields } from "../schema/json-schema.ts";

const stepsOf = (path: string): string[] => path.replace(/^\./, "").split(".");

function valueAt(object: Fields, path: string): unknown {
  let at: unknown = object;
  for (const step of stepsOf(path)) at = isFields(at) ? at[step] : undefined;
  return at;
}

/** Reads and writes a custom resource through the paths of its scale subresource. */
export function customScale(scale: CustomResourceSubresourceScale): NonNullable<KindInfo["scale"]> {
  return {
    read(object) {
      const number = (path: string) => {
        const value = valueAt(object, path);
        return typeof value === "number" ? value : undefined;
      };
      const selector = scale.labelSelectorPath ? valueAt(object, scale.labelSelectorPath) : undefined;
      return {
        spec: number(scale.specReplicasPath),
        status: number(scale.statusReplicasPath) ?? 0,
        selector: typeof selector === "string" ? selector : undefined,
      };
    },
    write(object, replicas) {
      const steps = stepsOf(scale.specReplicasPath);
      let at: Fields = object;
      for (const step of steps.slice(0, -1)) {
        if (!isFields(at[step])) at[step] = {};
        at = at[step] as Fields;
      }
      at[steps.at(-1)!] = replicas;
    },
  };
}

/** The replicas that a scale names must be whole numbers, its selector a text. */
export function validateScale(object: ApiObject, scale: CustomResourceSubresourceScale, status: boolean): FieldError[] {
  const errors = status ? [] : checkReplicas(object, scale.specReplicasPath);
  errors.push(...checkReplicas(object, scale.statusReplicasPath));
  if (scale.labelSelectorPath) {
    const selector = valueAt(object, scale.labelSelectorPath);
    if (selector !== undefined && typeof selector !== "string")
      errors.push(wrongType(scale.labelSelectorPath, "", selector, "string"));
  }
  return errors;
}

function checkReplicas(object: ApiObject, path: string): FieldError[] {
  const holder = object[stepsOf(path)[0]!];
  if (Array.isArray(holder))
    return [
      fieldError.invalid(
        path,
        0,
        `${path} accessor error: [] is of the type []interface {}, expected map[string]interface{}`,
      ),
    ];
  const value = valueAt(object, path);
  if (value === undefined) return [];
  if (typeof value !== "number" || !Number.isInteger(value)) return [wrongType(path, 0, value, "int64")];
  if (value < 0) return [fieldError.invalid(path, value, "should be a non-negative integer")];
  if (value > 2147483647) return [fieldError.invalid(path, value, "should be less than or equal to 2147483647")];
  return [];
}

function wrongType(path: string, zero: unknown, value: unknown, wanted: string): FieldError {
  const go =
    typeof value === "number"
      ? "float64"
      : typeof value === "boolean"
        ? "bool"
        : typeof value === "string"
          ? "string"
          : Array.isArray(value)
            ? "[]interface {}"
            : "map[string]interface {}";
  return fieldError.invalid(
    path,
    zero,
    `${path} accessor error: ${String(value)} is of the type ${go}, expected ${wanted}`,
  );
}
