export { type DnsFacts, resolve, type Resolution } from "./records.ts";
export { type DnsDeps, type DnsOptions, type DnsServer, startDns } from "./server.ts";
