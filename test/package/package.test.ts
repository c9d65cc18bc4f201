import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

const home = join(import.meta.dirname, "../..");
let project: string;

const node = (args: readonly string[], options: { cwd?: string } = {}) =>
  execFileSync(process.execPath, ["--no-warnings", ...args], {
    cwd: options.cwd ?? project,
    encoding: "utf8",
    timeout: 120_000,
  });

/** A project of somebody else's, with the package in its node_modules and nothing of this checkout but Node's types. */
before(() => {
  project = mkdtempSync(join(tmpdir(), "slim-consumer-"));
  mkdirSync(join(project, "node_modules/@types"), { recursive: true });
  node([join(home, "scripts/package.ts"), "stage", join(project, "node_modules/slim")], { cwd: home });
  for (const name of ["@types/node", "undici-types"])
    symlinkSync(join(home, "node_modules", name), join(project, "node_modules", name));
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(
    join(project, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: {
        target: "esnext",
        module: "nodenext",
        strict: true,
        noEmit: true,
        types: ["node"],
        skipLibCheck: false,
      },
      include: ["*.ts"],
    }),
  );
});
after(() => rmSync(project, { recursive: true, force: true }));

test("its types are complete, and wrong fields are found", () => {
  writeFileSync(
    join(project, "types.ts"),
    `import { type Cluster, type kinds, resources, startCluster, StatusError, WaitError } from "slim";
     import { startTestCluster, useCluster, type TestCluster } from "slim/testing";
     export async function use(cluster: Cluster): Promise<string | undefined> {
       const { items } = await cluster.client.list(resources.pods, { namespace: "default" });
       // @ts-expect-error a pod has no such field
       void items[0]?.spec.nonsense;
       const lamps = { group: "x.y", version: "v1", resource: "lamps", kind: "Lamp", namespaced: true } as const;
       const lamp = await cluster.client.get<{ spec: { on: boolean } }>(lamps, "a", { namespace: "n" });
       const on: boolean = lamp.spec.on;
       for await (const { object } of cluster.watch(resources.deployments)) return object.spec?.template.spec?.containers[0]?.image;
       return String(on);
     }
     export const all: unknown[] = [startCluster, StatusError, WaitError, startTestCluster, useCluster];
     export type Both = [kinds.Deployment, TestCluster];`,
  );
  node([join(home, "node_modules/typescript/bin/tsc"), "-p", project]);
});

test("it runs without any dependency, on a platform that is not Linux", () => {
  writeFileSync(
    join(project, "run.mjs"),
    `Object.defineProperty(process, "platform", { value: "darwin" });
     const { startCluster } = await import("slim");
     await using cluster = await startCluster({ engine: "fake" });
     await cluster.apply("{ apiVersion: v1, kind: Pod, metadata: { name: p }, spec: { containers: [{ name: a, image: b }] } }");
     console.log((await cluster.waitFor("pod/p")).status.phase);
     console.log(await startCluster().catch((error) => error.code));`,
  );
  assert.equal(node([join(project, "run.mjs")]), "Running\nunsupported-platform\n");
});

test("nothing of the development leaks into it", () => {
  const manifest = JSON.parse(readFileSync(join(project, "node_modules/slim/package.json"), "utf8")) as Record<
    string,
    object
  >;
  assert.equal(manifest.dependencies, undefined);
  assert.equal(manifest.devDependencies, undefined);
  assert.equal(manifest.private, undefined);
  assert.deepEqual(Object.keys(manifest.optionalDependencies ?? {}), ["koffi"]);
  assert.deepEqual(Object.keys(manifest.bin ?? {}), ["slim", "slimd", "kubectl-slim"]);
});

test("its programs start", () => {
  for (const name of ["slim", "slimd", "kubectl-slim"])
    assert.match(
      node([join(project, `node_modules/slim/dist/${name}.js`), "--help"]),
      new RegExp(name.replace("-", ".")),
    );
});
