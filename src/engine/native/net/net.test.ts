import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pluginInput, readCNINetwork } from "./cni.ts";
import { tableText } from "./host-rules.ts";
import { createAddressPool } from "./ipam.ts";

test("addresses: in order, not the network's, the host's or the broadcast one; full is said; given back last", () => {
  const pool = createAddressPool("10.1.2.8/29");
  assert.deepEqual(
    [1, 2, 3, 4, 5].map(() => pool.take()),
    ["10.1.2.10", "10.1.2.11", "10.1.2.12", "10.1.2.13", "10.1.2.14"],
  );
  assert.throws(() => pool.take(), /no free address is left in the pod CIDR 10\.1\.2\.8\/29/);
  pool.giveBack("10.1.2.12");
  assert.equal(pool.take(), "10.1.2.12");
});

test("addresses: those of an earlier run are not given out again", () => {
  const pool = createAddressPool("10.1.0.0/16");
  pool.mark("10.1.3.4");
  pool.mark("192.0.2.1"); // of another range, before the range was changed
  assert.equal(pool.take(), "10.1.3.5");
});

for (const cidr of ["10.1.0.0", "10.1.0.0/30", "10.1.0.0/7", "fd00::/64", "x"])
  test(`addresses: ${cidr} is refused`, () => assert.throws(() => createAddressPool(cidr), /is not an IPv4 range/));

test("host rules: masquerade outside the cluster, host ports with and without address", () => {
  const text = tableText({ table: "t", podCIDR: "10.1.0.0/24", clusterCIDR: "10.1.0.0/16", interfacePrefix: "sx" }, [
    {
      address: "10.1.0.5",
      mappings: [
        { hostPort: 80, containerPort: 8080, protocol: "TCP" },
        { hostPort: 53, containerPort: 5353, protocol: "UDP", hostIP: "192.0.2.7" },
      ],
    },
  ]);
  assert.match(text, /tcp \. 80 : 10\.1\.0\.5 \. 8080/);
  assert.match(text, /192\.0\.2\.7 \. udp \. 53 : 10\.1\.0\.5 \. 5353/);
  assert.match(text, /ip saddr 10\.1\.0\.0\/24 ip daddr != 10\.1\.0\.0\/16 oifname != "sx\*" masquerade/);
});

const plugin = { type: "bridge", capabilities: { portMappings: true, bandwidth: false }, x: 1 };

test("CNI: a plugin gets name, version, what it is capable of and the result before it", () => {
  const network = { name: "n", cniVersion: "1.0.0", plugins: [plugin] };
  assert.deepEqual(pluginInput(network, plugin, { portMappings: [1], bandwidth: 2 }, { ips: [] }), {
    type: "bridge",
    x: 1,
    name: "n",
    cniVersion: "1.0.0",
    runtimeConfig: { portMappings: [1] },
    prevResult: { ips: [] },
  });
  assert.deepEqual(pluginInput(network, { type: "tuning" }, { portMappings: [1] }, undefined), {
    type: "tuning",
    name: "n",
    cniVersion: "1.0.0",
  });
});

test("CNI: the first file counts; a single plugin is a list of one; faults are told", () => {
  const directory = mkdtempSync(join(tmpdir(), "slim-cni-"));
  try {
    assert.throws(() => readCNINetwork(directory), /no \*\.conflist/);
    writeFileSync(
      join(directory, "20-list.conflist"),
      JSON.stringify({ name: "list", cniVersion: "0.4.0", plugins: [plugin] }),
    );
    assert.equal(readCNINetwork(directory).name, "list");
    writeFileSync(join(directory, "10-one.conf"), JSON.stringify({ name: "one", type: "ptp" }));
    assert.deepEqual(
      readCNINetwork(directory).plugins.map(({ type }) => type),
      ["ptp"],
    );
    writeFileSync(join(directory, "05-evil.conf"), JSON.stringify({ name: "evil", type: "../../bin/sh" }));
    assert.throws(() => readCNINetwork(directory), /invalid plugin type/);
    assert.throws(() => readCNINetwork("/no/such/directory"), /ENOENT/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
