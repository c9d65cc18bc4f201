export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogValues = Readonly<Record<string, unknown>>;

/** Constant message plus key/values. A child adds values to every line (one child per pod, controller, request). */
export interface Logger {
  debug(message: string, values?: LogValues): void;
  info(message: string, values?: LogValues): void;
  warn(message: string, values?: LogValues): void;
  error(message: string, values?: LogValues): void;
  child(values: LogValues): Logger;
}

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** Says nothing: what a library does unless it is handed a logger. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};

/** A logger that hands finished lines (`time LEVEL message key=value …`) to `write`. */
export function createLogger(
  write: (line: string) => void,
  options: { level?: LogLevel; now: () => number },
  values: LogValues = {},
): Logger {
  const least = LEVELS.indexOf(options.level ?? "info");
  const at = (level: LogLevel) => (message: string, more?: LogValues) => {
    if (LEVELS.indexOf(level) < least) return;
    const pairs = Object.entries({ ...values, ...more }).map(([key, value]) => ` ${key}=${show(value)}`);
    write(`${new Date(options.now()).toISOString()} ${level.toUpperCase().padEnd(5)} ${message}${pairs.join("")}`);
  };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (more) => createLogger(write, options, { ...values, ...more }),
  };
}

function show(value: unknown): string {
  if (value instanceof Error) return JSON.stringify(value.stack ?? value.message);
  if (typeof value === "string") return /^[\w./:@+-]+$/.test(value) ? value : JSON.stringify(value);
  return JSON.stringify(value) ?? "undefined";
}
