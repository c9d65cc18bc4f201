import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Pod } from "#kinds";
import { type DnsSettings, parseResolvConf, podDns } from "./dns.ts";
import { kernelHostname, podHostname } from "./hostname.ts";
import { hostNetworkHostsFile, podHostsFile } from "./hosts-file.ts";

const pod = (spec: Partial<Pod["spec"]>, name = "p"): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "ns", uid: "u1" },
  spec: { containers: [], ...spec },
});

describe("podHostsFile()", () => {
  const head = [
    "# Kubernetes-managed hosts file.",
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
    "fe00::0\tip6-localnet",
    "fe00::0\tip6-mcastprefix",
    "fe00::1\tip6-allnodes",
    "fe00::2\tip6-allrouters",
  ].join("\n");
  it("with domain and aliases is what the kubelet writes", () => {
    const text = podHostsFile({
      podIPs: ["10.245.0.3"],
      hostname: "hh",
      domain: "sub.ns.svc.cluster.local",
      aliases: [{ ip: "1.2.3.4", hostnames: ["foo", "bar"] }],
    });
    assert.equal(
      text,
      `${head}\n10.245.0.3\thh.sub.ns.svc.cluster.local\thh\n\n# Entries added by HostAliases.\n1.2.3.4\tfoo\tbar\n`,
    );
  });
  it("has a line for each address", () => {
    const text = podHostsFile({ podIPs: ["10.0.0.1", "fd00::1"], hostname: "p", domain: "", aliases: [] });
    assert.equal(text, `${head}\n10.0.0.1\tp\nfd00::1\tp\n`);
  });
  it("in the host's network is the host's own", () =>
    assert.equal(
      hostNetworkHostsFile("127.0.0.1 localhost\n", []),
      "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n",
    ));
});

describe("podHostname()", () => {
  const long = "a".repeat(62);
  const table: [string, Partial<Pod["spec"]>, string, { hostname: string; domain: string }][] = [
    ["the pod's name", {}, "p", { hostname: "p", domain: "" }],
    ["cut at 63 characters, not behind a dash", {}, `${long}--bcd`, { hostname: long, domain: "" }],
    ["hostname and subdomain", { hostname: "h", subdomain: "s" }, "p", { hostname: "h", domain: "s.ns.svc.c.l" }],
    ["override", { hostname: "h", subdomain: "s", hostnameOverride: "o.x" }, "p", { hostname: "o.x", domain: "" }],
  ];
  for (const [name, spec, podName, expected] of table) {
    it(name, () => assert.deepEqual(podHostname(pod(spec, podName), "c.l"), expected));
  }
  it("refuses what is no label", () =>
    assert.throws(() => podHostname(pod({ hostname: "a.b" }), "c.l"), /pod Hostname "a.b" is not a valid DNS label/));
  it("as FQDN must fit the kernel", () => {
    assert.equal(kernelHostname(pod({ subdomain: "s", setHostnameAsFQDN: true }), "c.l"), "p.s.ns.svc.c.l");
    assert.equal(kernelHostname(pod({ setHostnameAsFQDN: true }), "c.l"), "p");
    const name = "x".repeat(60);
    assert.throws(() => kernelHostname(pod({ subdomain: "s", setHostnameAsFQDN: true }, name), "c.l"), {
      message: `failed to construct FQDN from pod hostname and cluster domain, FQDN ${name}.s.ns.svc.c.l is too long (64 characters is the max, 73 characters requested)`,
    });
  });
});

describe("podDns()", () => {
  const settings: DnsSettings = {
    clusterDNS: ["10.96.0.10"],
    clusterDomain: "cluster.local",
    host: { servers: ["8.8.8.8"], searches: ["corp", "svc.cluster.local"], options: ["edns0"] },
  };
  const cluster = {
    servers: ["10.96.0.10"],
    searches: ["ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp"],
    options: ["ndots:5"],
  };
  const table: [string, Partial<Pod["spec"]>, object][] = [
    ["ClusterFirst", { dnsPolicy: "ClusterFirst" }, cluster],
    ["no policy", {}, cluster],
    ["ClusterFirst in the host's network", { dnsPolicy: "ClusterFirst", hostNetwork: true }, settings.host],
    ["ClusterFirstWithHostNet", { dnsPolicy: "ClusterFirstWithHostNet", hostNetwork: true }, cluster],
    ["Default", { dnsPolicy: "Default" }, settings.host],
    [
      "None",
      {
        dnsPolicy: "None",
        dnsConfig: { nameservers: ["1.1.1.1"], options: [{ name: "x" }, { name: "y", value: "2" }] },
      },
      { servers: ["1.1.1.1"], searches: [], options: ["x", "y:2"] },
    ],
    [
      "own settings added, an option replaced",
      {
        dnsConfig: {
          nameservers: ["1.1.1.1", "10.96.0.10"],
          searches: ["mine", "corp"],
          options: [{ name: "ndots", value: "2" }],
        },
      },
      { servers: ["10.96.0.10", "1.1.1.1"], searches: [...cluster.searches, "mine"], options: ["ndots:2"] },
    ],
  ];
  for (const [name, spec, expected] of table) {
    it(name, () => assert.deepEqual(podDns(pod(spec), settings), { ...expected, warnings: [] }));
  }

  it("keeps the limits and says so", () => {
    const searches = Array.from({ length: 40 }, (_, i) => `d${i}`);
    const found = podDns(
      pod({ dnsPolicy: "None", dnsConfig: { nameservers: ["1", "2", "3", "4"], searches } }),
      settings,
    );
    assert.deepEqual(found.servers, ["1", "2", "3"]);
    assert.deepEqual(found.searches, searches.slice(0, 32));
    assert.deepEqual(
      found.warnings.map(({ message }) => message),
      [
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 1 2 3",
        `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${searches.slice(0, 32).join(" ")}`,
      ],
    );
  });
  it("cuts the search line at 2048 characters", () => {
    const searches = Array.from({ length: 20 }, (_, i) => `${String(i).padStart(3, "0")}${"x".repeat(197)}`);
    const found = podDns(pod({ dnsPolicy: "None", dnsConfig: { searches } }), settings);
    // Ten of 200 characters and nine blanks are 2009, one more would be 2210.
    assert.equal(found.searches.length, 10);
  });
  it("falls back to the host's without a cluster DNS", () => {
    const found = podDns(pod({}), { ...settings, clusterDNS: [] });
    assert.deepEqual(found.servers, ["8.8.8.8"]);
    assert.equal(found.warnings[0]?.reason, "MissingClusterDNS");
  });
});

describe("parseResolvConf()", () => {
  it("adds servers, takes the last search, merges options", () =>
    assert.deepEqual(
      parseResolvConf(
        "# x\nnameserver 1.1.1.1\nsearch a b\nnameserver 2.2.2.2\nsearch c. .\noptions ndots:1 edns0\noptions ndots:3\n",
      ),
      { servers: ["1.1.1.1", "2.2.2.2"], searches: ["c"], options: ["ndots:3", "edns0"] },
    ));
});
