import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { IPAddress, ServiceCIDR } from "../generated/types.ts";
import {
  nameIsIPAddress,
  validateIPAddress,
  validateServiceCIDR,
  validateServiceCIDRUpdate,
} from "./validate-addresses.ts";

const told = (errors: readonly { field: string; message: string }[]) =>
  errors.map(({ field, message }) => `${field}: ${message}`);
const range = (...cidrs: string[]): ServiceCIDR => ({ metadata: { name: "c" }, spec: { cidrs } }) as ServiceCIDR;
const FAMILIES = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";

describe("IPAddress", () => {
  for (const [name, errors] of [
    ["10.0.0.1", []],
    ["fe80::42:1dff:fe84:f9e2", []],
    ["1.2.3.04", ["must not have leading 0s"]],
    ["FE80::1", ['must be in canonical form ("fe80::1")']],
    ["x", ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]],
  ] as const)
    it(`may${errors.length ? " not" : ""} be called ${name}`, () =>
      assert.deepEqual(nameIsIPAddress(name, false), errors));

  it("has a parent", () => {
    const of = (parentRef?: object) => told(validateIPAddress({ metadata: {}, spec: { parentRef } } as IPAddress));
    assert.deepEqual(of(), ["spec.parentRef: Required value"]);
    assert.deepEqual(of({ resource: "a/b" }), [
      `spec.parentRef.resource: Invalid value: "a/b": may not contain '/'`,
      "spec.parentRef.name: Required value",
    ]);
    assert.deepEqual(of({ resource: "services", namespace: "ns", name: "x" }), []);
  });
});

describe("ServiceCIDR", () => {
  for (const [cidrs, errors] of [
    [["10.1.0.0/24", "2001:db8::/64"], []],
    [[], ["spec.cidrs: Required value: at least one CIDR required"]],
    [
      ["10.0.0.0/8", "x", "y"],
      ['spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/8","x","y"]}: may only hold up to 2 values'],
    ],
    [["10.0.0.1/8"], ['spec.cidrs[0]: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length']],
    [["10.1.0.0/24", "10.2.0.0/24"], [`spec.cidrs: Invalid value: ["10.1.0.0/24","10.2.0.0/24"]: ${FAMILIES}`]],
  ] as const)
    it(`${cidrs.join()}: ${errors[0] ?? "valid"}`, () =>
      assert.deepEqual(told(validateServiceCIDR(range(...cidrs))), errors));

  it("keeps its ranges, and may get one of the other family", () => {
    const update = (...now: string[]) => told(validateServiceCIDRUpdate(range(...now), range("10.0.0.0/16")));
    assert.deepEqual(update("10.0.0.0/16"), []);
    assert.deepEqual(update("10.0.0.0/16", "2001:db8::/64"), []);
    assert.deepEqual(update("10.1.0.0/16"), ['spec.cidrs[0]: Invalid value: "10.1.0.0/16": field is immutable']);
    assert.deepEqual(update(), ["spec.cidrs: Invalid value: []: field is immutable"]);
  });
});
