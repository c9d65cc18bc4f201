export { createFakeEngine, type FakeEngine } from "./fake-engine.ts";
export {
  type FakeContainer,
  type FakeEngineOptions,
  type FakeExec,
  type FakeImage,
  type FakeMoment,
  type FakePull,
  type FakeScript,
  scriptOfCommand,
} from "./script.ts";
