import type { CommandSpec } from "../context.ts";
import { apply } from "./apply.ts";
import { auth } from "./auth.ts";
import { remove } from "./delete.ts";
import { describe } from "./describe.ts";
import { apiResources, apiVersions, version } from "./discovery.ts";
import { events } from "./events.ts";
import { attach, exec } from "./exec.ts";
import { get } from "./get.ts";
import { logs } from "./logs.ts";
import { annotate, label, patch, scale } from "./modify.ts";
import { rollout } from "./rollout.ts";
import { wait } from "./wait.ts";

export const commands: readonly CommandSpec[] = [
  annotate,
  apiResources,
  apiVersions,
  apply,
  attach,
  auth,
  describe,
  events,
  exec,
  get,
  label,
  logs,
  patch,
  remove,
  rollout,
  scale,
  version,
  wait,
];
