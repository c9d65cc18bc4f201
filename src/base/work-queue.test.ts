import assert from "node:assert/strict";
import test from "node:test";
import { createFakeClock } from "./clock.ts";
import { createWorkQueue } from "./work-queue.ts";

function setUp() {
  const clock = createFakeClock();
  const queue = createWorkQueue(clock);
  const abort = new AbortController();
  return { clock, queue, abort };
}

test("a key that waits is handled once, however often it was added", async () => {
  const { clock, queue, abort } = setUp();
  const handled: string[] = [];
  queue.add("a");
  queue.add("a");
  queue.add("b");
  queue.run(async (key) => void handled.push(key), { signal: abort.signal });
  await clock.advance(0);
  assert.deepEqual(handled, ["a", "b"]);
  assert.equal(queue.idle, true);
});

test("a key that is added while it is handled is handled once more, never at the same time", async () => {
  const { clock, queue, abort } = setUp();
  let running = 0;
  let most = 0;
  let times = 0;
  queue.run(
    async () => {
      running++;
      most = Math.max(most, running);
      if (++times === 1) {
        queue.add("a");
        queue.add("a");
      }
      await clock.sleep(10);
      running--;
    },
    { concurrency: 4, signal: abort.signal },
  );
  queue.add("a");
  await clock.advance(100);
  assert.equal(times, 2);
  assert.equal(most, 1);
});

test("at most `concurrency` keys are handled at once", async () => {
  const { clock, queue, abort } = setUp();
  let running = 0;
  let most = 0;
  for (const key of ["a", "b", "c", "d", "e"]) queue.add(key);
  queue.run(
    async () => {
      most = Math.max(most, ++running);
      await clock.sleep(1);
      running--;
    },
    { concurrency: 2, signal: abort.signal },
  );
  await clock.advance(10);
  assert.equal(most, 2);
  assert.equal(queue.length, 0);
});

test("addAfter() keeps the earlier of two waits", async () => {
  const { clock, queue, abort } = setUp();
  const at: number[] = [];
  queue.run(async () => void at.push(clock.monotonic()), { signal: abort.signal });
  queue.addAfter("a", 100);
  queue.addAfter("a", 50);
  queue.addAfter("a", 200);
  await clock.advance(1000);
  assert.deepEqual(at, [50]);
});

test("addRateLimited() doubles from 5 ms until forget()", async () => {
  const { clock, queue, abort } = setUp();
  const at: number[] = [];
  queue.run(
    async (key) => {
      at.push(clock.monotonic());
      if (at.length < 4) queue.addRateLimited(key);
    },
    { signal: abort.signal },
  );
  queue.add("a");
  await clock.advance(1000);
  assert.deepEqual(at, [0, 5, 15, 35]);
  queue.forget("a");
  queue.addRateLimited("a");
  await clock.advance(5);
  assert.equal(at.length, 5);
});

test("an aborted queue hands out nothing more and leaves no timer", async () => {
  const { clock, queue, abort } = setUp();
  let times = 0;
  queue.run(async () => void times++, { signal: abort.signal });
  queue.addAfter("a", 10);
  abort.abort();
  queue.add("b");
  await clock.advance(100);
  assert.equal(times, 0);
  assert.equal(clock.pending, 0);
});
