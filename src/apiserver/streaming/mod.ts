export { createStreaming, type StreamingDeps } from "./streaming.ts";
