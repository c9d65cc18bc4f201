import { deepEqual } from "#base";
import {
  type CustomResourceDefinition,
  type CustomResourceDefinitionNames,
  type FieldError,
  fieldError,
  isDNS1035Label,
  isDNS1123Subdomain,
} from "#kinds";
import { isTrueCondition } from "../conditions.ts";
import { validateApproval } from "./approval.ts";
import { validateConversion } from "./conversion.ts";
import { validateVersion } from "./version.ts";

/** What is wrong with a new definition, beyond its metadata, in Kubernetes' words. */
export function validateDefinition(definition: CustomResourceDefinition): FieldError[] {
  return [
    ...validateName(definition),
    ...validateSpec(definition),
    ...validateNames(definition.status?.acceptedNames, "status.acceptedNames"),
    ...validateStoredVersions(definition),
    ...validateApproval(definition, undefined),
    ...validatePreserving(definition),
  ];
}

/** What is wrong with a changed one. */
export function validateDefinitionUpdate(
  definition: CustomResourceDefinition,
  old: CustomResourceDefinition,
): FieldError[] {
  const { spec } = definition;
  const fixed = (path: string, value: unknown, before: unknown) =>
    deepEqual(value, before) ? [] : [fieldError.invalid(path, value, "field is immutable")];
  return [
    ...validateSpec(definition, old),
    ...(isTrueCondition(old, "Established")
      ? [
          ...fixed("spec.scope", spec.scope, old.spec.scope),
          ...fixed("spec.names.kind", spec.names.kind, old.spec.names.kind),
        ]
      : []),
    ...fixed("spec.group", spec.group, old.spec.group),
    ...fixed("spec.names.plural", spec.names.plural, old.spec.names.plural),
    ...validateStoredVersions(definition),
    ...validateApproval(definition, old),
    ...(old.spec.preserveUnknownFields ? [] : validatePreserving(definition)),
  ];
}

function validateName({ metadata, spec }: CustomResourceDefinition): FieldError[] {
  if (!metadata?.name || metadata.name === `${spec.names.plural}.${spec.group}`) return [];
  return [fieldError.invalid("metadata.name", metadata.name, 'must be spec.names.plural+"."+spec.group')];
}

function validateSpec(definition: CustomResourceDefinition, old?: CustomResourceDefinition): FieldError[] {
  const { spec } = definition;
  const { versions } = spec;
  const errors: FieldError[] = [...validateGroup(spec.group)];
  if (!spec.scope) errors.push(fieldError.required("spec.scope"));
  else if (spec.scope !== "Cluster" && spec.scope !== "Namespaced")
    errors.push(fieldError.notSupported("spec.scope", spec.scope, ["Cluster", "Namespaced"]));
  for (const [i, { schema }] of versions.entries())
    if (!schema?.openAPIV3Schema) errors.push(fieldError.required(`spec.versions[${i}].schema.openAPIV3Schema`));
  const shared = sharedParts(versions);
  for (const [i, version] of versions.entries()) {
    const texts = isDNS1035Label(version.name);
    if (texts.length > 0) errors.push(fieldError.invalid(`spec.versions[${i}].name`, version.name, texts.join(",")));
    const before = old?.spec.versions.find(({ name }) => name === version.name);
    const places = Object.fromEntries(
      PARTS.map(({ name, own, top }) => [
        name,
        shared.has(name) ? (i === 0 ? top : undefined) : `spec.versions[${i}]${own}`,
      ]),
    );
    errors.push(...validateVersion(version, `spec.versions[${i}]`, places, before));
  }
  if (new Set(versions.map(({ name }) => name)).size !== versions.length)
    errors.push(fieldError.invalid("spec.versions", versions, "must contain unique version names"));
  if (versions.filter(({ storage }) => storage).length !== 1)
    errors.push(
      fieldError.invalid("spec.versions", versions, "must have exactly one version marked as storage version"),
    );
  for (const name of ["plural", "singular", "kind", "listKind"] as const)
    if (!spec.names[name]) errors.push(fieldError.required(`spec.names.${name}`));
  errors.push(...validateNames(spec.names, "spec.names"));
  return [...errors, ...validateConversion(spec.conversion, spec.preserveUnknownFields === true)];
}

/** Parts of versions, and where they stand when all versions share them: the original takes them out of the versions then. */
const PARTS = [
  { name: "schema", own: ".schema", top: "spec.validation" },
  { name: "subresources", own: ".subresources", top: "spec.subresources" },
  { name: "additionalPrinterColumns", own: ".additionalPrinterColumns", top: "spec.additionalPrinterColumns" },
  { name: "selectableFields", own: ".selectableFields", top: "spec.selectableFields" },
] as const;

function sharedParts(versions: CustomResourceDefinition["spec"]["versions"]): ReadonlySet<string> {
  const [first] = versions;
  const same = PARTS.filter(
    ({ name }) => first?.[name] !== undefined && versions.every((version) => deepEqual(version[name], first[name])),
  );
  return new Set(same.map(({ name }) => name));
}

function validateGroup(group: string): FieldError[] {
  if (!group) return [fieldError.required("spec.group")];
  const texts = isDNS1123Subdomain(group);
  if (texts.length > 0) return [fieldError.invalid("spec.group", group, texts.join(","))];
  return group.includes(".")
    ? []
    : [fieldError.invalid("spec.group", group, "should be a domain with at least one dot")];
}

function validateNames(names: CustomResourceDefinitionNames | undefined, path: string): FieldError[] {
  if (!names) return [];
  const errors: FieldError[] = [];
  const check = (at: string, value: string | undefined, mixed = false) => {
    if (!value) return;
    const texts = isDNS1035Label(mixed ? value.toLowerCase() : value);
    if (texts.length === 0) return;
    const words = mixed ? `may have mixed case, but should otherwise match: ${texts.join(",")}` : texts.join(",");
    errors.push(fieldError.invalid(`${path}.${at}`, value, words));
  };
  check("plural", names.plural);
  check("singular", names.singular);
  check("kind", names.kind, true);
  check("listKind", names.listKind, true);
  for (const [i, name] of (names.shortNames ?? []).entries()) check(`shortNames[${i}]`, name);
  if (names.kind && names.kind === names.listKind)
    errors.push(fieldError.invalid(`${path}.listKind`, names.listKind, "kind and listKind may not be the same"));
  for (const [i, name] of (names.categories ?? []).entries()) check(`categories[${i}]`, name);
  return errors;
}

function validateStoredVersions({ spec, status }: CustomResourceDefinition): FieldError[] {
  const stored = status?.storedVersions ?? [];
  const path = "status.storedVersions";
  if (stored.length === 0) return [fieldError.invalid(path, stored, "must have at least one stored version")];
  const errors = spec.versions
    .filter(({ name, storage }) => storage && !stored.includes(name))
    .map(({ name }) => fieldError.invalid(path, stored, `must have the storage version ${name}`));
  for (const [i, name] of stored.entries()) {
    if (spec.versions.some((version) => version.name === name)) continue;
    errors.push(
      fieldError.invalid(
        `${path}[${i}]`,
        name,
        `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`,
      ),
    );
  }
  return errors;
}

function validatePreserving({ spec }: CustomResourceDefinition): FieldError[] {
  if (!spec.preserveUnknownFields) return [];
  return [
    fieldError.invalid(
      "spec.preserveUnknownFields",
      true,
      "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
    ),
  ];
}
