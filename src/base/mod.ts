export { type Backoff, type BackoffOptions, createBackoff } from "./backoff.ts";
export { type Clock, createFakeClock, type FakeClock, systemClock, type Timer } from "./clock.ts";
export { type DeepReadonly, deepClone, deepEqual, deepFreeze } from "./deep.ts";
export { CodedError, hasCode, messageOf } from "./errors.ts";
export { createJsonPath, type JsonPath, JsonPathError, type JsonPathOptions, printValue } from "./json-path/mod.ts";
export { createLogger, type Logger, type LogLevel, type LogValues, silentLogger } from "./log.ts";
export { createSeededRandom, type Random, systemRandom } from "./random.ts";
export { type Channels, createChannels } from "./websocket-channels.ts";
export { createWorkQueue, type WorkQueue } from "./work-queue.ts";
