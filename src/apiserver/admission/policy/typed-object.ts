import type { Environment } from "@marcbachmann/cel-js";
import { type KindInfo, type SchemaField, schemaOf } from "#kinds";
import { ObjectValue } from "../../cel/mod.ts";
import { declareType } from "../../crd/rules/types.ts";

const SCALARS: Readonly<Record<string, string>> = {
  string: "string",
  int32: "int",
  int64: "int",
  float64: "double",
  bool: "bool",
  bytes: "bytes",
  time: "google.protobuf.Timestamp",
  microtime: "google.protobuf.Timestamp",
};

type States = Map<string, "open" | "done">;

/** Declares the type of a kind's objects, to check expressions with; its name. Nothing is evaluated in such an environment. */
export function declareKind(env: Environment, kind: KindInfo): string {
  if (kind.customSchema) return declareType(env, kind.customSchema as never, kind.kind, true).name;
  return declareBuiltIn(env, kind.schema, new Map());
}

function declareBuiltIn(env: Environment, name: string, states: States): string {
  const schema = schemaOf(name);
  if (!schema || schema.fields.size === 0) return "dyn";
  const type = name.replaceAll(/[^\w.]/g, "_");
  if (states.has(name)) return type;
  states.set(name, "open");
  const fields: Record<string, string> = {};
  for (const field of schema.fields.values()) {
    // a type that holds itself has no end
    const item = field.ref && states.get(field.ref) === "open" ? "dyn" : itemType(env, field, states);
    const shapes = { one: item, list: `list<${item}>`, map: `map<string, ${item}>` };
    if (/^[A-Za-z_]\w*$/.test(field.name)) fields[field.name] = shapes[field.shape];
  }
  env.registerType(type, { ctor: class extends ObjectValue {}, fields });
  states.set(name, "done");
  return type;
}

function itemType(env: Environment, field: SchemaField, states: States): string {
  return field.ref ? declareBuiltIn(env, field.ref, states) : (SCALARS[field.type] ?? "dyn");
}
