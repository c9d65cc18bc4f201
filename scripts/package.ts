// `prepare` builds what `npm pack` packs, and writes the package.json of the package: everything is in the bundles, so that of the
// dependencies only the optional ones for the native engine stay. `restore` puts the development package.json back.
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const manifest = join(root, "package.json");
const kept = join(root, "build/package.development.json");
const run = (script: string) =>
  execFileSync(process.execPath, ["--no-warnings", join(import.meta.dirname, script)], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
  });

if (process.argv[2] === "restore") {
  if (existsSync(kept)) renameSync(kept, manifest);
} else {
  // left from a pack that was interrupted
  if (existsSync(kept)) renameSync(kept, manifest);
  rmSync(join(root, "dist"), { recursive: true, force: true });
  run("generate.ts");
  run("build.ts");
  run("types.ts");
  mkdirSync(join(root, "build"), { recursive: true });
  copyFileSync(manifest, kept);
  const { name, version, description, license, type, engines, exports, bin, files, optionalDependencies } = JSON.parse(
    readFileSync(manifest, "utf8"),
  ) as Record<string, unknown> & { optionalDependencies: Record<string, string> };
  const published = {
    name,
    version,
    description,
    license,
    type,
    engines,
    exports,
    bin,
    files,
    optionalDependencies: { koffi: optionalDependencies.koffi },
    peerDependencies: { "@types/node": ">=24" },
    peerDependenciesMeta: { "@types/node": { optional: true } },
  };
  writeFileSync(manifest, `${JSON.stringify(published, null, 2)}\n`);
}
