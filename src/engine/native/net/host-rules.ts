import type { SandboxConfig } from "../../port.ts";
import { mustRun, type Run } from "../sys/run.ts";

/** A pod's host ports, as records hold them. */
export interface PortHolder {
  readonly address: string;
  readonly mappings: SandboxConfig["portMappings"];
}

/**
 * The instance's own nftables table: traffic of pods that leaves for the outside is masqueraded, and host ports lead to pods.
 * The proxy's rules for Services live in a table of their own.
 */
export interface HostRules {
  /** Replaces the whole table. */
  install(holders: readonly PortHolder[]): Promise<void>;
  addPorts(holder: PortHolder): Promise<void>;
  removePorts(holder: PortHolder): Promise<void>;
  purge(): Promise<void>;
}

export interface HostRulesOptions {
  readonly table: string;
  /** Of this node's pods. */
  readonly podCIDR: string;
  /** Of all nodes' pods. */
  readonly clusterCIDR: string;
  readonly interfacePrefix: string;
}

export function createHostRules(deps: { run: Run; nft: string }, options: HostRulesOptions): HostRules {
  const { table } = options;
  const apply = (script: string) => mustRun(deps.run, deps.nft, ["-f", "-"], { input: script });
  const change = async (verb: "add" | "delete", holder: PortHolder) => {
    const elements = elementsOf(holder);
    if (elements.length > 0)
      await apply(
        `${elements.map(([set, element]) => `${verb} element ip ${table} ${set} { ${element} }`).join("\n")}\n`,
      );
  };
  return {
    install: async (holders) => void (await apply(tableText(options, holders))),
    addPorts: (holder) => change("add", holder),
    removePorts: (holder) => change("delete", holder),
    purge: async () => void (await apply(`add table ip ${table}\ndelete table ip ${table}\n`)),
  };
}

/** The table as `nft -f` reads it; pure, for tests. */
export function tableText(options: HostRulesOptions, holders: readonly PortHolder[]): string {
  const { table, podCIDR, clusterCIDR, interfacePrefix } = options;
  const elements = (set: string) => {
    const mine = holders.flatMap(elementsOf).filter(([name]) => name === set);
    return mine.length === 0 ? "" : `elements = { ${mine.map(([, element]) => element).join(", ")} }`;
  };
  const lead = `fib daddr type local meta l4proto { tcp, udp, sctp } dnat ip to meta l4proto . th dport map @ports`;
  const leadByAddress = `meta l4proto { tcp, udp, sctp } dnat ip to ip daddr . meta l4proto . th dport map @ports_by_address`;
  return `add table ip ${table}
delete table ip ${table}
table ip ${table} {
  map ports { type inet_proto . inet_service : ipv4_addr . inet_service; ${elements("ports")}
  }
  map ports_by_address { type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service; ${elements("ports_by_address")}
  }
  set own { type ipv4_addr . ipv4_addr; ${elements("own")}
  }
  chain prerouting { type nat hook prerouting priority -105; policy accept;
    ${leadByAddress}
    ${lead}
  }
  chain output { type nat hook output priority -105; policy accept;
    ${leadByAddress}
    ${lead}
  }
  chain postrouting { type nat hook postrouting priority srcnat; policy accept;
    ct status dnat ip saddr . ip daddr @own masquerade
    ip saddr 127.0.0.0/8 oifname "${interfacePrefix}*" masquerade
    ip saddr ${podCIDR} ip daddr != ${clusterCIDR} oifname != "${interfacePrefix}*" masquerade
  }
}
`;
}

function elementsOf({ address, mappings }: PortHolder): (readonly [set: string, element: string])[] {
  const ports = mappings.map(({ hostIP, hostPort, containerPort, protocol }) => {
    const target = `${address} . ${containerPort}`;
    const port = `${protocol.toLowerCase()} . ${hostPort}`;
    return hostIP === undefined || hostIP === "" || hostIP === "0.0.0.0"
      ? (["ports", `${port} : ${target}`] as const)
      : (["ports_by_address", `${hostIP} . ${port} : ${target}`] as const);
  });
  return ports.length === 0 ? [] : [...ports, ["own", `${address} . ${address}`] as const];
}
