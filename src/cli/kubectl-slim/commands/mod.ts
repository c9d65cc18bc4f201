import type { CommandSpec } from "../context.ts";
import { get } from "./get.ts";

export const commands: readonly CommandSpec[] = [get];
