// Bundles the programs into dist/, so that they start fast. Does nothing when no source is newer than the bundle.
import { existsSync, globSync, statSync } from "node:fs";
import { build } from "esbuild";

const entries = {
  mod: "src/mod.ts",
  testing: "src/testing/mod.ts",
  "kubectl-slim": "src/cli/kubectl-slim.ts",
  slimd: "src/cli/slimd.ts",
  slim: "src/cli/slim.ts",
  hello: "src/cli/hello.ts",
  "store-writer": "src/store/sqlite/worker.ts",
};
const sources = globSync(["src/**/*.ts", "src/**/*.json", "package-lock.json", "scripts/build.ts"]);
const newest = Math.max(...sources.map((path) => statSync(path).mtimeMs));
const marker = "dist/hello.js";

if (!existsSync(marker) || statSync(marker).mtimeMs < newest) {
  await build({
    entryPoints: entries,
    outdir: "dist",
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node24",
    // koffi carries a compiled module beside its JavaScript
    external: ["koffi"],
    banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
    minify: true,
    keepNames: true,
    sourcemap: true,
    sourcesContent: false,
    logLevel: "warning",
  });
}
