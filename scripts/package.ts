// `prepare` builds what `npm pack` packs, and writes the package.json of the package: everything is in the bundles, so that of the
// dependencies only the optional one of the native engine stays. `restore` puts the development package.json back.
// `stage DIRECTORY` lays the same package out in a directory and touches nothing else.
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";

const root = join(import.meta.dirname, "..");
const manifest = join(root, "package.json");
const kept = join(root, "build/package.development.json");

const [action, directory] = process.argv.slice(2);
if (action === "restore") {
  if (existsSync(kept)) renameSync(kept, manifest);
} else if (action === "stage" && directory) {
  run("generate.ts");
  run("build.ts");
  run("types.ts", join(directory, "dist/types"));
  for (const file of globSync(join(root, "dist/*.js"))) copyFileSync(file, join(directory, "dist", basename(file)));
  writeFileSync(join(directory, "package.json"), published());
} else if (action === "prepare") {
  // left from a pack that was interrupted
  if (existsSync(kept)) renameSync(kept, manifest);
  rmSync(join(root, "dist"), { recursive: true, force: true });
  run("generate.ts");
  run("build.ts");
  run("types.ts");
  const text = published();
  mkdirSync(join(root, "build"), { recursive: true });
  copyFileSync(manifest, kept);
  writeFileSync(manifest, text);
} else {
  console.error("usage: package.ts prepare | restore | stage DIRECTORY");
  process.exitCode = 2;
}

function run(script: string, ...args: string[]): void {
  const words = ["--no-warnings", join(import.meta.dirname, script), ...args];
  execFileSync(process.execPath, words, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
}

/** The package.json that users get. */
function published(): string {
  const { name, version, description, license, type, engines, exports, bin, files, optionalDependencies } = JSON.parse(
    readFileSync(manifest, "utf8"),
  ) as Record<string, unknown> & { optionalDependencies: Record<string, string> };
  const dependencies = {
    optionalDependencies: { koffi: optionalDependencies.koffi },
    peerDependencies: { "@types/node": ">=24" },
    peerDependenciesMeta: { "@types/node": { optional: true } },
  };
  const whole = { name, version, description, license, type, engines, exports, bin, files, ...dependencies };
  return `${JSON.stringify(whole, null, 2)}\n`;
}
