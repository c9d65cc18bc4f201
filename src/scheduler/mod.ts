export { type Scheduler, type SchedulerDeps, type SchedulerOptions, startScheduler } from "./scheduler.ts";
