import type { CommandSpec } from "../context.ts";
import { apply } from "./apply.ts";
import { auth } from "./auth.ts";
import { config } from "./config.ts";
import { cp } from "./cp.ts";
import { create } from "./create.ts";
import { remove } from "./delete.ts";
import { describe } from "./describe.ts";
import { apiResources, apiVersions, version } from "./discovery.ts";
import { edit } from "./edit.ts";
import { events } from "./events.ts";
import { attach, exec } from "./exec.ts";
import { explain } from "./explain.ts";
import { get } from "./get.ts";
import { logs } from "./logs.ts";
import { annotate, label, patch, scale } from "./modify.ts";
import { portForward } from "./port-forward.ts";
import { rollout } from "./rollout.ts";
import { wait } from "./wait.ts";

export const commands: readonly CommandSpec[] = [
  annotate,
  apiResources,
  apiVersions,
  apply,
  attach,
  auth,
  config,
  cp,
  create,
  describe,
  edit,
  events,
  exec,
  explain,
  get,
  label,
  logs,
  patch,
  portForward,
  remove,
  rollout,
  scale,
  version,
  wait,
];
