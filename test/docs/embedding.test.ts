import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const home = join(import.meta.dirname, "../..");
const text = readFileSync(join(home, "docs/embedding.md"), "utf8");
const modules: Readonly<Record<string, string>> = {
  slim: pathToFileURL(join(home, "src/mod.ts")).href,
  "slim/testing": pathToFileURL(join(home, "src/testing/mod.ts")).href,
};
const isRoot = process.platform === "linux" && process.getuid?.() === 0;

// a program, and below it what it prints
const programs = [...text.matchAll(/^```ts( root)?\n([\s\S]*?)^```\n(?:```text\n([\s\S]*?)^```)?/gm)];

test("the page has its programs", () => assert.ok(programs.length >= 6, `${programs.length} programs`));

for (const [, root, program = "", printed] of programs) {
  const title = program.split("\n").find((line) => line.startsWith("await ") || line.startsWith("const ")) ?? "";
  test(`docs/embedding.md: ${title}`, { skip: root && !isRoot && "needs root on Linux" }, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), "slim-docs-"));
    t.after(() => rmSync(directory, { recursive: true, force: true }));
    const file = join(directory, "program.ts");
    writeFileSync(
      file,
      program.replace(/from "(slim[^"]*)"/g, (_, name: string) => `from ${JSON.stringify(modules[name])}`),
    );
    const outcome = await new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
      const child = execFile(process.execPath, ["--no-warnings", file], { timeout: 60_000 }, (_error, stdout, stderr) =>
        resolve({ code: child.exitCode, stdout, stderr }),
      );
    });
    assert.equal(outcome.stderr, "");
    if (printed !== undefined) assert.equal(outcome.stdout, printed);
    assert.equal(outcome.code, 0, outcome.stdout);
  });
}
