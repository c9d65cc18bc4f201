import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { createServer, connect as dial } from "node:net";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { networkInterfaces } from "node:os";
import { trial, type Trial } from "./trial.test-support.ts";

const SERVE = (port: number) => [
  "sh",
  "-c",
  `mkdir -p /w && hostname > /w/index.html && exec httpd -f -p ${port} -h /w`,
];

async function fetchFrom(t: Trial, id: string, url: string): Promise<string> {
  return t.sh(id, `for i in 1 2 3 4 5; do timeout 3 wget -qO- ${url} && exit 0; sleep 0.2; done; exit 1`);
}

async function fetchFromHost(host: string, port: number): Promise<string> {
  for (let tries = 20; ; tries--) {
    try {
      const socket = dial({ host, port, timeout: 2000 });
      socket.end("GET / HTTP/1.0\r\n\r\n");
      return (await text(socket)).trim().split("\n").at(-1)!;
    } catch (error) {
      if (tries === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

const hostAddress = () =>
  Object.values(networkInterfaces())
    .flat()
    .find((address) => address && !address.internal && address.family === "IPv4")!.address;

trial("pods reach each other, themselves, the host; the host reaches pods", async (t) => {
  const [a, b] = [await t.sandbox({ hostname: "pod-a" }), await t.sandbox({ hostname: "pod-b" })];
  const ipOf = (id: string) => t.engine.sandboxes().find((sandbox) => sandbox.id === id)!.ips[0]!;
  const server = await t.run(a, SERVE(8080));
  const client = await t.run(b, ["sleep", "1000"]);
  assert.equal(await fetchFrom(t, client, `http://${ipOf(a)}:8080/`), "pod-a");
  assert.equal(await fetchFrom(t, server, `http://${ipOf(a)}:8080/`), "pod-a");
  assert.equal(await fetchFromHost(ipOf(a), 8080), "pod-a");
  const listener = createServer((socket) => socket.end(String(socket.remoteAddress)));
  listener.listen(0, "0.0.0.0");
  await once(listener, "listening");
  const { port } = listener.address() as { port: number };
  assert.match(await t.sh(client, `nc ${hostAddress()} ${port} < /dev/null`), new RegExp(`${ipOf(b)}$`));
  listener.close();
});

trial("containers of one pod share network, IPC, host name and /dev/shm", async (t) => {
  const sandbox = await t.sandbox({ hostname: "shared-name", shmSizeBytes: 1 << 20 });
  const [one, two] = [await t.run(sandbox, SERVE(80)), await t.run(sandbox, ["sleep", "1000"])];
  assert.equal(await fetchFrom(t, two, "http://127.0.0.1/"), "shared-name");
  assert.equal(await t.sh(two, "hostname; cat /etc/hostname"), "shared-name\nshared-name");
  await t.sh(one, "echo common > /dev/shm/x");
  assert.equal(await t.sh(two, "cat /dev/shm/x; df -k /dev/shm | tail -1 | awk '{print $2}'"), "common\n1024");
  for (const kind of ["net", "ipc", "uts"])
    assert.equal(await t.sh(one, `readlink /proc/self/ns/${kind}`), await t.sh(two, `readlink /proc/self/ns/${kind}`));
});

trial("name resolution files are what the pod asked for", async (t) => {
  const dns = {
    servers: ["10.96.0.10", "1.1.1.1"],
    searches: ["default.svc.cluster.local", "svc.cluster.local"],
    options: ["ndots:5", "edns0"],
  };
  const id = await t.run(await t.sandbox({ dns }), ["sleep", "1000"]);
  assert.equal(
    await t.sh(id, "cat /etc/resolv.conf"),
    "search default.svc.cluster.local svc.cluster.local\nnameserver 10.96.0.10\nnameserver 1.1.1.1\noptions ndots:5 edns0",
  );
});

trial("host ports lead to the pod, from the host, from loopback and from the pod itself", async (t) => {
  const sandbox = await t.sandbox({
    hostname: "porter",
    portMappings: [
      { hostPort: 18_080, containerPort: 80, protocol: "TCP" },
      { hostPort: 18_081, containerPort: 80, protocol: "TCP", hostIP: "127.0.0.1" },
    ],
  });
  const id = await t.run(sandbox, SERVE(80));
  assert.equal(await fetchFromHost(hostAddress(), 18_080), "porter");
  assert.equal(await fetchFromHost("127.0.0.1", 18_080), "porter");
  assert.equal(await fetchFromHost("127.0.0.1", 18_081), "porter");
  assert.equal(await fetchFrom(t, id, `http://${hostAddress()}:18080/`), "porter");
  await t.engine.removeSandbox(sandbox);
  await assert.rejects(once(dial({ host: hostAddress(), port: 18_080, timeout: 1000 }), "connect"), /ECONNREFUSED/);
});

trial("addresses are given back, but not at once given out again", async (t) => {
  const first = await t.sandbox();
  const address = t.engine.sandboxes()[0]?.ips[0];
  await t.engine.removeSandbox(first);
  await t.sandbox();
  assert.notEqual(t.engine.sandboxes()[0]?.ips[0], address);
});

trial(
  "a full address range is said, and nothing is left of the attempt",
  async (t) => {
    for (let i = 0; i < 5; i++) await t.sandbox();
    await assert.rejects(t.sandbox(), /no free address is left in the pod CIDR 10\.92\.7\.8\/29/);
    assert.equal(t.engine.sandboxes().length, 5);
  },
  { podCIDR: "10.92.7.8/29" },
);

trial("what leaves for the outside has the host's address, what goes to other pods keeps its own", async (t) => {
  const outside = `slimout${process.pid}`;
  const ip = (...args: string[]) => execFileSync("ip", args, { stdio: ["ignore", "pipe", "inherit"] });
  ip("netns", "add", outside);
  try {
    ip("link", "add", "slimout0", "type", "veth", "peer", "name", "eth9", "netns", outside);
    ip("addr", "add", "198.51.100.1/24", "dev", "slimout0");
    ip("link", "set", "slimout0", "up");
    for (const args of [
      ["addr", "add", "198.51.100.2/24", "dev", "eth9"],
      ["link", "set", "eth9", "up"],
    ])
      ip("-n", outside, ...args);
    const server = spawn("ip", [
      "netns",
      "exec",
      outside,
      "busybox",
      "nc",
      "-ll",
      "-p",
      "7777",
      "-e",
      "sh",
      "-c",
      "cat /proc/net/tcp /proc/net/tcp6",
    ]);
    try {
      const id = await t.run(await t.sandbox(), ["sleep", "1000"]);
      const seen = await t.sh(
        id,
        "for i in 1 2 3 4 5 6 7 8 9 10; do timeout 3 nc 198.51.100.2 7777 </dev/null && exit 0; sleep 0.2; done; exit 1",
      );
      assert.match(seen, /016433C6/); // 198.51.100.1, as the kernel prints it
      const [, a = 0, b = 0, c = 0, d = 0] = /^(\d+)\.(\d+)\.(\d+)\.(\d+)$/
        .exec(t.engine.sandboxes()[0]!.ips[0]!)!
        .map(Number);
      const own = [d, c, b, a].map((byte) => byte.toString(16).padStart(2, "0").toUpperCase()).join("");
      assert.equal(seen.includes(own), false);
    } finally {
      server.kill("SIGKILL");
    }
  } finally {
    ip("netns", "del", outside);
  }
});

const CNI = mkdtempSync(join(tmpdir(), "slim-cni-"));
const BRIDGE = `slimt${process.pid}`.slice(0, 15);
writeFileSync(
  join(CNI, "10-test.conflist"),
  JSON.stringify({
    cniVersion: "0.4.0",
    name: "slim-test",
    plugins: [
      {
        type: "bridge",
        bridge: BRIDGE,
        isGateway: true,
        ipMasq: false,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          dataDir: join(CNI, "ipam"),
          ranges: [[{ subnet: "10.94.3.0/24" }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  }),
);
after(() => {
  spawnSync("ip", ["link", "del", BRIDGE]);
  rmSync(CNI, { recursive: true, force: true });
});

trial(
  "a CNI configuration replaces the pod network; its addresses are given back",
  async (t) => {
    const sandbox = await t.sandbox({
      hostname: "by-cni",
      portMappings: [{ hostPort: 18_085, containerPort: 80, protocol: "TCP" }],
    });
    const ip = t.engine.sandboxes()[0]!.ips[0]!;
    assert.match(ip, /^10\.94\.3\.\d+$/);
    const id = await t.run(sandbox, SERVE(80));
    assert.equal(await fetchFrom(t, id, "http://127.0.0.1/"), "by-cni");
    assert.equal(await fetchFromHost(ip, 80), "by-cni");
    assert.equal(await fetchFromHost(hostAddress(), 18_085), "by-cni");
    const engine = await t.reopen!();
    assert.deepEqual(engine.sandboxes()[0]?.ips, [ip]);
    await engine.removeSandbox(sandbox);
    const leases = readdirSync(join(CNI, "ipam/slim-test")).filter((name) => /^\d/.test(name));
    assert.deepEqual(leases, []);
  },
  { cniConfDir: CNI },
);
