export { type Frontend, type Plan, planFrontends, type Protocol, type ProxyFacts, type Target } from "./plan.ts";
export { type Proxy, type ProxyDeps, type ProxyOptions, removeProxy, startProxy } from "./proxy.ts";
