import assert from "node:assert/strict";
import test from "node:test";
import { createBackoff } from "./backoff.ts";
import { createFakeClock, systemClock } from "./clock.ts";
import { deepClone, deepEqual, deepFreeze } from "./deep.ts";
import { createLogger } from "./log.ts";
import { createSeededRandom, systemRandom } from "./random.ts";

test("the fake clock fires timers in order of time, then of creation", async () => {
  const clock = createFakeClock(1000);
  const fired: string[] = [];
  clock.setTimer(() => fired.push("late"), 20);
  clock.setTimer(() => fired.push("first"), 10);
  clock.setTimer(() => fired.push("second"), 10);
  clock.setTimer(() => fired.push("never"), 10).clear();
  await clock.advance(15);
  assert.deepEqual(fired, ["first", "second"]);
  assert.equal(clock.now(), 1015);
  await clock.advance(5);
  assert.deepEqual(fired, ["first", "second", "late"]);
});

test("a timer that is set by a timer fires in the same advance when it is due", async () => {
  const clock = createFakeClock();
  const at: number[] = [];
  const tick = () => {
    at.push(clock.monotonic());
    clock.setTimer(tick, 10);
  };
  clock.setTimer(tick, 10);
  await clock.advance(35);
  assert.deepEqual(at, [10, 20, 30]);
});

test("sleep() rejects with the reason of an abort and leaves no timer", async () => {
  for (const clock of [createFakeClock(), systemClock]) {
    const abort = new AbortController();
    const sleeping = clock.sleep(60_000, { signal: abort.signal });
    abort.abort(new Error("enough"));
    await assert.rejects(sleeping, /enough/);
    await assert.rejects(clock.sleep(1, { signal: abort.signal }), /enough/);
  }
});

test("backoff doubles to its maximum and starts afresh after a quiet time", async () => {
  const clock = createFakeClock();
  const backoff = createBackoff(clock, { initial: 10, max: 50, resetAfter: 100 });
  assert.deepEqual(
    [1, 2, 3, 4].map(() => backoff.next("a")),
    [10, 20, 40, 50],
  );
  assert.equal(backoff.current("a"), 50);
  assert.equal(backoff.current("b"), 0);
  await clock.advance(151);
  assert.equal(backoff.next("a"), 10);
  backoff.reset("a");
  assert.equal(backoff.next("a"), 10);
});

test("deepEqual() takes an undefined property for an absent one", () => {
  assert.equal(deepEqual({ a: 1, b: undefined }, { a: 1 }), true);
  assert.equal(deepEqual({ a: 1 }, { a: 1, b: undefined }), true);
  assert.equal(deepEqual({ a: null }, {}), false);
  assert.equal(deepEqual([1, { a: [2] }], [1, { a: [2] }]), true);
  assert.equal(deepEqual([1], { 0: 1 }), false);
});

test("deepClone() gives a copy that may change while its frozen source does not", () => {
  const source = deepFreeze({ a: { b: [1, 2] } });
  const copy = deepClone<{ a: { b: number[] } }>(source);
  copy.a.b.push(3);
  assert.deepEqual(source, { a: { b: [1, 2] } });
  assert.throws(() => (source.a.b as number[]).push(3), TypeError);
});

test("a logger writes its values and its parents' and nothing below its level", () => {
  const lines: string[] = [];
  const logger = createLogger((line) => lines.push(line), { level: "info", now: () => 0 }, { pod: "a/b" });
  logger.debug("unseen");
  logger.child({ try: 2 }).warn("pull failed", { why: "no route" });
  assert.deepEqual(lines, ['1970-01-01T00:00:00.000Z WARN  pull failed pod=a/b try=2 why="no route"']);
});

test("suffixes use Kubernetes' alphabet; a seeded source repeats itself", () => {
  for (const random of [systemRandom, createSeededRandom(1)])
    assert.match(random.suffix(50), /^[bcdfghjklmnpqrstvwxz2456789]{50}$/);
  assert.equal(createSeededRandom(7).uuid(), createSeededRandom(7).uuid());
  assert.match(systemRandom.uuid(), /^[0-9a-f-]{36}$/);
});
