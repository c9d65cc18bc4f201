/** Rows of a bench: what was measured, the figure, and the figure to reach where the design names one. */
export interface Report {
  row(what: string, value: number, unit: string, target?: number): void;
}

/** @param json one JSON object a row instead of a table */
export function report(json: boolean): Report {
  return {
    row(what, value, unit, target) {
      const figure = Number(value.toPrecision(3));
      if (json) console.log(JSON.stringify({ what, value: figure, unit, ...(target !== undefined && { target }) }));
      else {
        const goal = target === undefined ? "" : `   to reach: ${target} ${unit}`;
        console.log(`${what.padEnd(48)} ${String(figure).padStart(9)} ${unit.padEnd(12)}${goal}`.trimEnd());
      }
    },
  };
}

/** The value below which the share `q` of the figures lies. */
export function quantile(figures: readonly number[], q: number): number {
  const sorted = [...figures].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}

export interface Pace {
  /** Calls a second. */
  readonly rate: number;
  /** Milliseconds of each call. */
  readonly times: readonly number[];
}

/** Does `total` calls, `parallel` of them at any time. */
export async function pace(total: number, parallel: number, call: (i: number) => Promise<unknown>): Promise<Pace> {
  const times: number[] = [];
  let next = 0;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      while (next < total) {
        const i = next++;
        const start = performance.now();
        await call(i);
        times.push(performance.now() - start);
      }
    }),
  );
  return { rate: (total * 1000) / (performance.now() - began), times };
}
