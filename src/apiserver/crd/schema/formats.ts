import { isIP, isIPv4, isIPv6 } from "node:net";
import { isDNS1123Label, isDNS1123Subdomain } from "#kinds";
import { uriError } from "../../cel/libraries/urls.ts";

const pattern = (source: RegExp) => (text: string) => source.test(text);
const DATE = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;
const DATE_TIME =
  /^(\d{4}-\d{2}-\d{2})[tT]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([zZ]|[+-]([01]\d|2[0-3]):[0-5]\d)$/;
const HOST_LABEL = /^[\p{L}\p{N}\p{S}]([\p{L}\p{N}\p{S}-]{0,61}[\p{L}\p{N}\p{S}])?$/u;

/** Formats of texts that schemas may name, by their name without dashes; others are ignored. */
const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  bsonobjectid: pattern(/^[0-9a-fA-F]{24}$/),
  uri: (text) => uriError(text) === undefined,
  email: pattern(/^(?:[^<>@\s]+|"[^"]*"|[^<>]*<[^<>@\s]+)@[^<>@\s]+>?$/),
  hostname: (text) => text.length <= 255 && text.split(".").every((label) => HOST_LABEL.test(label)),
  ipv4: isIPv4,
  ipv6: isIPv6,
  cidr: isNetwork,
  mac: pattern(/^([0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\2){4}[0-9a-fA-F]{2}$|^[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2}$/),
  uuid: pattern(/^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i),
  uuid3: pattern(/^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i),
  uuid4: pattern(/^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i),
  uuid5: pattern(/^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i),
  isbn: (text) => isIsbn10(text) || isIsbn13(text),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  creditcard: isCreditCard,
  ssn: pattern(/^\d{3}[- ]?\d{2}[- ]?\d{4}$/),
  hexcolor: pattern(/^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/),
  rgbcolor: isRgbColor,
  byte: pattern(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/),
  password: () => true,
  date: (text) => DATE.test(text) && isDay(text),
  duration: isDuration,
  datetime: (text) => isDay(DATE_TIME.exec(text)?.[1] ?? ""),
  k8sshortname: (text) => isDNS1123Label(text).length === 0,
  k8slongname: (text) => isDNS1123Subdomain(text).length === 0,
};

const normalized = (format: string): string => format.replaceAll("-", "");

/** Whether a schema of this type with this format checks anything. */
export function isKnownFormat(type: string | undefined, format: string): boolean {
  if (type === undefined || type === "" || type === "string") return Object.hasOwn(FORMATS, normalized(format));
  if (type === "integer") return format === "int32" || format === "int64";
  return type === "number" && (format === "float" || format === "double");
}

/** True also for formats that are not known. */
export function matchesFormat(format: string, text: string): boolean {
  return FORMATS[normalized(format)]?.(text) ?? true;
}

function isDay(text: string): boolean {
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

function isNetwork(text: string): boolean {
  const [address = "", bits = "", ...rest] = text.split("/");
  return (
    rest.length === 0 && /^\d{1,3}$/.test(bits) && isIP(address) !== 0 && Number(bits) <= (isIPv4(address) ? 32 : 128)
  );
}

/** As Go reads durations (`1h30m`), and as Scala does (`2 days`). */
function isDuration(text: string): boolean {
  if (/^[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$/.test(text)) return true;
  return /^\s*(\d+)\s*(ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)\s*$/.test(
    text,
  );
}

function isIsbn10(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, "");
  if (!/^(\d{9}X|\d{10})$/.test(digits)) return false;
  const sum = [...digits].reduce((total, c, i) => total + (10 - i) * (c === "X" ? 10 : Number(c)), 0);
  return sum % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, "");
  if (!/^\d{13}$/.test(digits)) return false;
  return [...digits].reduce((total, c, i) => total + Number(c) * (i % 2 === 0 ? 1 : 3), 0) % 10 === 0;
}

const CARD =
  /^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$/;

function isCreditCard(text: string): boolean {
  const digits = text.replace(/[^0-9]+/g, "");
  if (!CARD.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, c, i) => {
    const value = i % 2 === 0 ? Number(c) : Number(c) * 2;
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}

function isRgbColor(text: string): boolean {
  const match = /^rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$/.exec(text);
  return match?.slice(1).every((part) => Number(part) <= 255) ?? false;
}
