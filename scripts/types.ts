// Writes dist/types/ (or the directory that is named): declarations of what the package exports, and of nothing else. Every file is translated by itself, which
// `isolatedDeclarations` makes possible; names of rooms (`#base`) become relative paths, so that the types need no other package.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import ts from "typescript";

const root = join(import.meta.dirname, "..");
const target = process.argv[2] ?? join(root, "dist/types");
const rooms = (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { imports: Record<string, string> })
  .imports;
const written = new Set<string>();

rmSync(target, { recursive: true, force: true });
for (const entry of ["src/mod.ts", "src/testing/mod.ts"]) translate(join(root, entry));

function translate(source: string): void {
  if (written.has(source)) return;
  written.add(source);
  const { outputText, diagnostics = [] } = ts.transpileDeclaration(readFileSync(source, "utf8"), {
    fileName: source,
    reportDiagnostics: true,
    compilerOptions: {
      target: ts.ScriptTarget.ESNext,
      module: ts.ModuleKind.NodeNext,
      isolatedDeclarations: true,
      strict: true,
    },
  });
  for (const { messageText } of diagnostics)
    throw new Error(`${source}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`);
  const text = outputText.replace(/(\bfrom\s+|\bimport\()"([^"]+)"/g, (whole, before: string, specifier: string) => {
    const path = resolve(specifier, source);
    if (path === undefined) {
      if (specifier.startsWith("node:")) return whole;
      throw new Error(`${source} exports types of the package "${specifier}", which users of slim may not have`);
    }
    translate(path);
    const from = relative(dirname(source), path).replaceAll("\\", "/").replace(/\.ts$/, ".js");
    return `${before}"${from.startsWith(".") ? from : `./${from}`}"`;
  });
  const out = join(target, relative(join(root, "src"), source).replace(/\.ts$/, ".d.ts"));
  mkdirSync(dirname(out), { recursive: true });
  writeFileSync(out, text);
}

function resolve(specifier: string, from: string): string | undefined {
  if (specifier.startsWith(".")) return join(dirname(from), specifier);
  const room = rooms[specifier];
  return room === undefined ? undefined : join(root, room);
}
