import { errnoName, type Libc } from "../sys/libc.ts";

/**
 * A route netlink socket, see rtnetlink(7): what `ip -batch` does, without the program. It stays in the network namespace
 * in which it was opened, so it can be used after the thread has left that namespace.
 */
export interface Netlink {
  /** Sends one request and waits for its answer. @throws Error with the kernel's error name */
  request(message: NetlinkMessage): void;
  close(): void;
}

export interface NetlinkMessage {
  readonly type: number;
  readonly flags: number;
  readonly body: Buffer;
  /** What it is, for the error message. */
  readonly what: string;
}

const NLM_F_REQUEST = 1;
const NLM_F_ACK = 4;
const NLM_F_REPLACE = 0x100;
const NLM_F_EXCL = 0x200;
const NLM_F_CREATE = 0x400;
const NLMSG_ERROR = 2;
const IFF_UP = 1;

export function openNetlink(libc: Libc): Netlink {
  const fd = libc.socket(16 /* AF_NETLINK */, 3 | 0o2000000 /* SOCK_RAW, close on exec */, 0 /* NETLINK_ROUTE */);
  let sequence = 0;
  const answer = Buffer.alloc(16_384);
  return {
    request(message) {
      const header = Buffer.alloc(16);
      header.writeUInt32LE(16 + message.body.length, 0);
      header.writeUInt16LE(message.type, 4);
      header.writeUInt16LE(message.flags | NLM_F_REQUEST | NLM_F_ACK, 6);
      header.writeUInt32LE(++sequence, 8);
      libc.send(fd, Buffer.concat([header, message.body]));
      libc.recv(fd, answer);
      if (answer.readUInt16LE(4) !== NLMSG_ERROR) throw new Error(`${message.what}: unexpected netlink answer`);
      const errno = answer.readInt32LE(16);
      if (errno !== 0)
        throw Object.assign(new Error(`${message.what}: ${errnoName(-errno)}`), { code: errnoName(-errno) });
    },
    close: () => libc.close(fd),
  };
}

/** A veth pair: `name` here and up, `peer` (interface index 2, down: it has no partner yet) in the namespace of the descriptor. */
export function createVeth(options: {
  name: string;
  mac: string;
  mtu: number;
  peer: string;
  peerMac: string;
  peerNamespace: number;
}): NetlinkMessage {
  const IFLA = { ADDRESS: 1, IFNAME: 3, MTU: 4, LINKINFO: 18, NET_NS_FD: 28 };
  const peer = Buffer.concat([
    interfaceHeader(PEER_INDEX, 0),
    attribute(IFLA.IFNAME, text(options.peer)),
    attribute(IFLA.ADDRESS, macBytes(options.peerMac)),
    attribute(IFLA.MTU, u32(options.mtu)),
    attribute(IFLA.NET_NS_FD, u32(options.peerNamespace)),
  ]);
  const body = Buffer.concat([
    interfaceHeader(0, IFF_UP),
    attribute(IFLA.IFNAME, text(options.name)),
    attribute(IFLA.ADDRESS, macBytes(options.mac)),
    attribute(IFLA.MTU, u32(options.mtu)),
    attribute(IFLA.LINKINFO, Buffer.concat([attribute(1, text("veth")), attribute(2, attribute(1, peer))])),
  ]);
  return { type: 16, flags: NLM_F_CREATE | NLM_F_EXCL, body, what: `create veth ${options.name}` };
}

/** Index of a pod's `eth0`; 1 is `lo`. */
export const PEER_INDEX = 2;

export function linkUp(index: number): NetlinkMessage {
  return { type: 16, flags: 0, body: interfaceHeader(index, IFF_UP), what: `interface ${index} up` };
}

export function deleteLink(name: string): NetlinkMessage {
  return {
    type: 17,
    flags: 0,
    body: Buffer.concat([interfaceHeader(0, 0), attribute(3, text(name))]),
    what: `delete ${name}`,
  };
}

/** An IPv4 address with a prefix of 32. */
export function addAddress(index: number, address: string): NetlinkMessage {
  const header = Buffer.alloc(8);
  header.writeUInt8(2, 0); // AF_INET
  header.writeUInt8(32, 1);
  header.writeUInt32LE(index, 4);
  const bytes = ipv4Bytes(address);
  const body = Buffer.concat([header, attribute(2, bytes), attribute(1, bytes)]); // IFA_LOCAL, IFA_ADDRESS
  return { type: 20, flags: NLM_F_CREATE | NLM_F_REPLACE, body, what: `address ${address}` };
}

/**
 * A route to `destination` (absent: the default route) through the interface, by `gateway` where there is one. Connections that
 * the host makes over it come from `source`, an address of the host; absent: the kernel chooses one.
 */
export function addRoute(options: {
  index: number;
  destination?: string;
  gateway?: string;
  source?: string | undefined;
}): NetlinkMessage {
  const header = Buffer.alloc(12);
  header.writeUInt8(2, 0); // AF_INET
  header.writeUInt8(options.destination === undefined ? 0 : 32, 1);
  header.writeUInt8(254, 4); // RT_TABLE_MAIN
  header.writeUInt8(3, 5); // RTPROT_BOOT
  header.writeUInt8(options.gateway === undefined ? 253 : 0, 6); // scope link or universe
  header.writeUInt8(1, 7); // RTN_UNICAST
  const body = Buffer.concat([
    header,
    options.destination === undefined ? Buffer.alloc(0) : attribute(1, ipv4Bytes(options.destination)),
    options.gateway === undefined ? Buffer.alloc(0) : attribute(5, ipv4Bytes(options.gateway)),
    options.source === undefined ? Buffer.alloc(0) : attribute(7, ipv4Bytes(options.source)),
    attribute(4, u32(options.index)),
  ]);
  return { type: 24, flags: NLM_F_CREATE | NLM_F_REPLACE, body, what: `route ${options.destination ?? "default"}` };
}

/** A neighbour entry that needs no ARP. */
export function addNeighbour(index: number, address: string, mac: string): NetlinkMessage {
  const header = Buffer.alloc(12);
  header.writeUInt8(2, 0);
  header.writeUInt32LE(index, 4);
  header.writeUInt16LE(0x80, 8); // NUD_PERMANENT
  const body = Buffer.concat([header, attribute(1, ipv4Bytes(address)), attribute(2, macBytes(mac))]);
  return { type: 28, flags: NLM_F_CREATE | NLM_F_REPLACE, body, what: `neighbour ${address}` };
}

function interfaceHeader(index: number, flags: number): Buffer {
  const header = Buffer.alloc(16);
  header.writeInt32LE(index, 4);
  header.writeUInt32LE(flags, 8);
  header.writeUInt32LE(flags, 12);
  return header;
}

/** Type, length, value, padded to four bytes. */
function attribute(type: number, value: Buffer): Buffer {
  const whole = Buffer.alloc((4 + value.length + 3) & ~3);
  whole.writeUInt16LE(4 + value.length, 0);
  whole.writeUInt16LE(type, 2);
  value.copy(whole, 4);
  return whole;
}

const text = (value: string) => Buffer.from(`${value}\0`);
const macBytes = (mac: string) => Buffer.from(mac.replaceAll(":", ""), "hex");
const ipv4Bytes = (address: string) => Buffer.from(address.split(".").map(Number));
function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
