// Who may import whom: docs/architecture.md, "Rooms". Tests may choose adapters, so they are left out.
const rooms = {
  base: [],
  kinds: ["base"],
  store: ["base"],
  engine: ["base"],
  client: ["kinds", "base"],
  apiserver: ["kinds", "store", "base"],
  controllers: ["client", "kinds", "base"],
  scheduler: ["client", "kinds", "base"],
  proxy: ["client", "kinds", "base"],
  dns: ["client", "kinds", "base"],
  kubelet: ["client", "engine", "kinds", "base"],
  diagnosis: ["client", "kinds", "base"],
  testing: ["cluster", "engine", "client", "kinds", "base"],
  cli: ["cluster", "diagnosis", "client", "kinds", "base"],
};
const forbidden = Object.entries(rooms).map(([room, allowed]) => ({
  name: `${room}-imports-only-${allowed.join("-") || "nothing"}`,
  severity: "error",
  from: { path: `^src/${room}/`, pathNot: "\\.test(-support)?\\.ts$" },
  to: { path: "^src/", pathNot: [`^src/(${[room, ...allowed].join("|")})/`] },
}));
module.exports = {
  forbidden: [
    ...forbidden,
    { name: "only-cluster-chooses-adapters", severity: "error", from: { path: "^src/", pathNot: ["^src/(cluster|engine|store|testing)/", "\\.test(-support)?\\.ts$", "^src/mod\\.ts$"] }, to: { path: "^src/(engine/(native|fake)|store/(memory|sqlite))/" } },
    { name: "rooms-are-entered-by-mod", severity: "error", from: { path: "^src/([^/]+)/", pathNot: "\\.test(-support)?\\.ts$" }, to: { path: "^src/[^/]+/.+", pathNot: ["^src/$1/", "/mod\\.ts$"] } },
  ],
  options: { doNotFollow: { path: "node_modules" }, tsPreCompilationDeps: false, enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default"] }, exclude: { path: "generated" } },
};
