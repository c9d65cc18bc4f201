import assert from "node:assert/strict";
import test from "node:test";
import type { EndpointSlice, Pod, Service } from "#kinds";
import { changeScript, elementsOf } from "./elements.ts";
import { planFrontends } from "./plan.ts";

const service = (spec: object, status: object = {}) =>
  ({
    metadata: { namespace: "n", name: "s" },
    spec: { clusterIP: "10.1.0.5", ports: [{ name: "http", port: 80 }], ...spec },
    status,
  }) as unknown as Service;
const slice = (endpoints: object[], more: object = {}) =>
  ({
    metadata: { namespace: "n", name: "s-1", labels: { "kubernetes.io/service-name": "s" } },
    addressType: "IPv4",
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
    endpoints,
    ...more,
  }) as unknown as EndpointSlice;
const endpoint = (ip: string, conditions: object = { ready: true }, nodeName = "a") => ({
  addresses: [ip],
  conditions,
  nodeName,
});

function frontends(
  services: Service[],
  slices: EndpointSlice[],
  pods: Pod[] = [],
  nodes = ["a"],
): Record<string, string> {
  const plan = planFrontends({ services, slices, pods, nodes: new Set(nodes) });
  return Object.fromEntries(
    [...plan].map(([key, { targets }]) => [key, targets.map(({ ip, port }) => `${ip}:${port}`).join(" ")]),
  );
}

test("a Service routes to its ready endpoints", () => {
  assert.deepEqual(
    frontends(
      [service({})],
      [slice([endpoint("10.0.0.2"), endpoint("10.0.0.1"), endpoint("10.0.0.3", { ready: false })])],
    ),
    { "10.1.0.5 tcp 80": "10.0.0.1:8080 10.0.0.2:8080" },
  );
});

test("without ready endpoints those that serve while they terminate stand in", () => {
  const leaving = endpoint("10.0.0.1", { ready: false, serving: true, terminating: true });
  assert.deepEqual(
    frontends(
      [service({})],
      [slice([leaving, endpoint("10.0.0.2", { ready: false, serving: false, terminating: true })])],
    ),
    { "10.1.0.5 tcp 80": "10.0.0.1:8080" },
  );
  assert.deepEqual(frontends([service({})], [slice([leaving, endpoint("10.0.0.3")])]), {
    "10.1.0.5 tcp 80": "10.0.0.3:8080",
  });
});

test("a Service without endpoints, a headless and an ExternalName one are not routed", () => {
  assert.deepEqual(frontends([service({})], []), {});
  assert.deepEqual(frontends([service({ clusterIP: "None" })], [slice([endpoint("10.0.0.1")])]), {});
  assert.deepEqual(frontends([service({ type: "ExternalName", clusterIP: "" })], []), {});
});

test("node ports, external and load balancer addresses lead to the same targets", () => {
  const wide = service(
    { type: "LoadBalancer", ports: [{ name: "http", port: 80, nodePort: 30080 }], externalIPs: ["192.0.2.7"] },
    { loadBalancer: { ingress: [{ ip: "192.0.2.8" }, { ip: "192.0.2.9", ipMode: "Proxy" }] } },
  );
  const target = "10.0.0.1:8080";
  assert.deepEqual(frontends([wide], [slice([endpoint("10.0.0.1")])]), {
    "10.1.0.5 tcp 80": target,
    "192.0.2.7 tcp 80": target,
    "192.0.2.8 tcp 80": target,
    "* tcp 30080": target,
  });
});

test("a Local policy keeps to endpoints of the own nodes", () => {
  const both = [slice([endpoint("10.0.0.1", { ready: true }, "a"), endpoint("10.0.0.2", { ready: true }, "b")])];
  const ports = [{ name: "http", port: 80, nodePort: 30080 }];
  assert.deepEqual(frontends([service({ type: "NodePort", ports, externalTrafficPolicy: "Local" })], both), {
    "10.1.0.5 tcp 80": "10.0.0.1:8080 10.0.0.2:8080",
    "* tcp 30080": "10.0.0.1:8080",
  });
  assert.deepEqual(frontends([service({ internalTrafficPolicy: "Local" })], both), {
    "10.1.0.5 tcp 80": "10.0.0.1:8080",
  });
});

test("host ports of pods are routed, at one address or all", () => {
  const pod = (ports: object[], phase = "Running") =>
    ({
      metadata: { uid: "u" },
      spec: { containers: [{ name: "c", ports }] },
      status: { podIP: "10.0.0.9", phase },
    }) as unknown as Pod;
  assert.deepEqual(
    frontends(
      [],
      [],
      [
        pod([
          { hostPort: 80, containerPort: 8080 },
          { hostPort: 53, containerPort: 53, protocol: "UDP", hostIP: "127.0.0.1" },
          { containerPort: 9 },
        ]),
      ],
    ),
    { "* tcp 80": "10.0.0.9:8080", "127.0.0.1 udp 53": "10.0.0.9:53" },
  );
  assert.deepEqual(frontends([], [], [pod([{ hostPort: 80, containerPort: 8080 }], "Succeeded")]), {});
});

test("a changed endpoint changes its elements only", () => {
  const state = (...ips: string[]) =>
    elementsOf(
      planFrontends({
        services: [service({})],
        slices: [slice(ips.map((ip) => endpoint(ip)))],
        pods: [],
        nodes: new Set(["a"]),
      }),
    );
  const one = state("10.0.0.1", "10.0.0.2");
  const two = state("10.0.0.1", "10.0.0.3");
  assert.equal(
    changeScript("t", one, two),
    "delete element ip t hairpin { 10.0.0.2 . 10.0.0.2 }\ndelete element ip t address_2 { 10.1.0.5 . tcp . 80 . 1 }\nadd element ip t hairpin { 10.0.0.3 . 10.0.0.3 }\nadd element ip t address_2 { 10.1.0.5 . tcp . 80 . 1 : 10.0.0.3 . 8080 }\n",
  );
  assert.equal(changeScript("t", two, two), "");
});

test("another number of targets moves the frontend to another chain", () => {
  const state = (...ips: string[]) =>
    elementsOf(
      planFrontends({
        services: [service({})],
        slices: [slice(ips.map((ip) => endpoint(ip)))],
        pods: [],
        nodes: new Set(["a"]),
      }),
    );
  const script = changeScript("t", state("10.0.0.1"), state("10.0.0.1", "10.0.0.2"));
  assert.match(
    script,
    /chain address_tcp_2 \{ meta l4proto tcp dnat ip to ip daddr \. meta l4proto \. th dport \. numgen random mod 2 map @address_2; \}/,
  );
  assert.match(script, /delete element ip t addresses \{ 10\.1\.0\.5 \. tcp \. 80 \}/);
  assert.match(script, /add element ip t addresses \{ 10\.1\.0\.5 \. tcp \. 80 : goto address_tcp_2 \}/);
});
