#!/usr/bin/env -S node --no-warnings
// kubectl-slim: kubectl's commands in plain JavaScript, for hosts without kubectl.
import { enableCompileCache } from "node:module";

// a command starts faster when its code was compiled before
enableCompileCache();
const { main } = await import("./kubectl-slim/main.ts");
await main();
