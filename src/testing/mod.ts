/**
 * Clusters for tests, with node:test, vitest or any other runner.
 *
 * @module
 */
export { createMovableClock, type MovableClock } from "./movable-clock.ts";
export {
  type ContainerMatch,
  type Hooks,
  type Play,
  startTestCluster,
  type TestCluster,
  type TestClusterOptions,
  useCluster,
} from "./test-cluster.ts";
