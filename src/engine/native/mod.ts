export { createNativeEngine, type NativeEngineDeps, type NativeEngineOptions } from "./create.ts";
