import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { DeepReadonly } from "#base";
import type { Endpoint, EndpointSlice, Pod, Service } from "#kinds";
import { createTriggerTimes, planSlices, SLICE_SIZE } from "./plan.ts";

const endpoint = (n: number): Endpoint => ({ addresses: [`10.0.0.${n}`], conditions: { ready: true } });
const port = (number: number, name = "") => ({ name, port: number, protocol: "TCP" });
const slice = (name: string, ports: object[], endpoints: Endpoint[]): DeepReadonly<EndpointSlice> =>
  ({ metadata: { name }, addressType: "IPv4", ports, endpoints }) as unknown as DeepReadonly<EndpointSlice>;
/** What is done, by the names of slices. */
const told = ({ create, update, remove }: ReturnType<typeof planSlices>) => ({
  create: create.map(({ endpoints }) => endpoints.length),
  update: update.map(({ slice: { metadata }, endpoints, ports }) => [
    metadata.name,
    endpoints.length,
    ports?.[0]?.port,
  ]),
  remove: remove.map(({ metadata }) => metadata.name),
});

describe("planSlices()", () => {
  const group = (ports: ReturnType<typeof port>[], ...ns: number[]) => ({ ports, endpoints: ns.map(endpoint) });

  it("leaves alone what is right", () => {
    const before = slice("a", [port(80)], [endpoint(1)]);
    assert.deepEqual(told(planSlices([group([port(80)], 1)], [before])), { create: [], update: [], remove: [] });
  });
  it("gives a service without endpoints one empty slice, and fills it later", () => {
    assert.deepEqual(told(planSlices([], [])), { create: [0], update: [], remove: [] });
    const placeholder = slice("a", [], []);
    assert.deepEqual(told(planSlices([], [placeholder])), { create: [], update: [], remove: [] });
    assert.deepEqual(told(planSlices([group([port(80)], 1, 2)], [placeholder])), {
      create: [],
      update: [["a", 2, 80]],
      remove: [],
    });
  });
  it("changes the ports of a slice in its place", () => {
    const before = slice("a", [port(80)], [endpoint(1)]);
    assert.deepEqual(told(planSlices([group([port(80, "http")], 1)], [before])), {
      create: [],
      update: [["a", 1, 80]],
      remove: [],
    });
  });
  it("splits what is too much for one, and removes what is left over", () => {
    const many = Array.from({ length: SLICE_SIZE + 1 }, (_, n) => n);
    assert.deepEqual(told(planSlices([group([port(80)], ...many)], [])), { create: [100, 1], update: [], remove: [] });
    const two = [slice("a", [port(80)], [endpoint(1)]), slice("b", [port(81)], [endpoint(2)])];
    assert.deepEqual(told(planSlices([group([port(80)], 1)], two)), { create: [], update: [], remove: ["b"] });
  });
});

it("a change is told with the time of what caused it, and once", () => {
  const service = {
    metadata: { name: "s", creationTimestamp: "2026-01-01T00:00:00Z" },
  } as unknown as DeepReadonly<Service>;
  const ready = (lastTransitionTime: string) =>
    ({
      metadata: {},
      status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime }] },
    }) as unknown as Pod;
  const times = createTriggerTimes();
  assert.equal(times.of("k", service, []), "2026-01-01T00:00:00Z");
  assert.equal(times.of("k", service, []), undefined);
  assert.equal(times.of("k", service, [ready("2026-01-01T00:00:05Z")]), "2026-01-01T00:00:05Z");
  assert.equal(times.of("k", service, [ready("2026-01-01T00:00:05Z")]), undefined);
  times.forget("k");
  assert.equal(times.of("k", service, []), "2026-01-01T00:00:00Z");
});
