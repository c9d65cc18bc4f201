import { spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import type { Environment, FileAccess } from "./environment.ts";

const files: FileAccess = {
  read: (name) => readFileSync(name, "utf8"),
  readBytes: (name) => readFileSync(name),
  write(name, content, mode) {
    writeFileSync(name, content);
    if (mode !== undefined && process.platform !== "win32") chmodSync(name, mode);
  },
  exists: (name) => existsSync(name),
  isDirectory: (name) => statSync(name).isDirectory(),
  list: (name) => readdirSync(name),
  makeDirectory: (name) => void mkdirSync(name, { recursive: true }),
  remove: (name) => rmSync(name, { recursive: true, force: true }),
  temporary: (prefix) => mkdtempSync(path.join(tmpdir(), prefix)),
};

/** The machine that this process runs on. */
export function nodeEnvironment(): Environment {
  return {
    env: process.env,
    platform: process.platform,
    path,
    home: homedir(),
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    files,
    now: () => Date.now(),
    onInterrupt(listener) {
      process.on("SIGINT", listener);
      return { [Symbol.dispose]: () => void process.off("SIGINT", listener) };
    },
    onResize(listener) {
      process.stdout.on("resize", listener);
      return { [Symbol.dispose]: () => void process.stdout.off("resize", listener) };
    },
    runEditor: ([program = "", ...args], file) =>
      new Promise((resolve, reject) => {
        const child = spawn(program, [...args, file], { stdio: "inherit", shell: process.platform === "win32" });
        child.once("error", reject);
        child.once("exit", (code) => resolve(code ?? 1));
      }),
  };
}
