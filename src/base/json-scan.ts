/** What a text is as JSON, in the words of the original's parser (Go's encoding/json). */
export interface JsonScan {
  /** The first violation of the syntax, `invalid character '}' looking for beginning of value`. */
  readonly error?: string;
  /** Fields that stand twice in one object, each once: `metadata.name`, `spec.containers[0].image`. */
  readonly duplicates: readonly string[];
  /** Where in the text each field stands, the last time; only when it was asked for. */
  readonly places?: ReadonlyMap<string, number>;
}

/** Walks through a text without making values of it. */
export function scanJson(text: string, options: { places?: boolean } = {}): JsonScan {
  const scanner = new Scanner(text, options.places ? new Map() : undefined);
  try {
    scanner.value("", BEGINNING);
    scanner.blanks();
    if (!scanner.atEnd) scanner.fail("after top-level value");
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    return { error: error.message, duplicates: [] };
  }
  return { duplicates: [...scanner.duplicates], ...(scanner.places ? { places: scanner.places } : {}) };
}

const BEGINNING = "looking for beginning of value";

class JsonSyntaxError extends Error {}

class Scanner {
  readonly duplicates = new Set<string>();
  readonly places: Map<string, number> | undefined;
  readonly #text: string;
  #at = 0;

  constructor(text: string, places: Map<string, number> | undefined) {
    this.#text = text;
    this.places = places;
  }

  get atEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  blanks(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at++;
    }
  }

  fail(where: string): never {
    const character = this.#text.codePointAt(this.#at);
    if (character === undefined) throw new JsonSyntaxError("unexpected end of JSON input");
    throw new JsonSyntaxError(`invalid character ${quoted(character)} ${where}`);
  }

  value(path: string, where: string): void {
    this.blanks();
    const first = this.#text[this.#at];
    if (first === "{") this.#object(path);
    else if (first === "[") this.#array(path);
    else if (first === '"') this.#string();
    else if (first === "t") this.#literal("true");
    else if (first === "f") this.#literal("false");
    else if (first === "n") this.#literal("null");
    else if (first === "-" || (first !== undefined && first >= "0" && first <= "9")) this.#number();
    else this.fail(where);
  }

  #object(path: string): void {
    const seen = new Set<string>();
    this.#at++;
    this.blanks();
    if (this.#text[this.#at] === "}") {
      this.#at++;
      return;
    }
    for (;;) {
      this.blanks();
      if (this.#text[this.#at] !== '"') this.fail("looking for beginning of object key string");
      const key = this.#string();
      const inner = path === "" ? key : `${path}.${key}`;
      this.places?.set(inner, this.#at);
      if (seen.has(key)) this.duplicates.add(inner);
      seen.add(key);
      this.blanks();
      if (this.#text[this.#at] !== ":") this.fail("after object key");
      this.#at++;
      this.value(inner, BEGINNING);
      this.blanks();
      const next = this.#text[this.#at];
      if (next !== "," && next !== "}") this.fail("after object key:value pair");
      this.#at++;
      if (next === "}") return;
    }
  }

  #array(path: string): void {
    this.#at++;
    this.blanks();
    if (this.#text[this.#at] === "]") {
      this.#at++;
      return;
    }
    for (let index = 0; ; index++) {
      this.value(`${path}[${index}]`, BEGINNING);
      this.blanks();
      const next = this.#text[this.#at];
      if (next !== "," && next !== "]") this.fail("after array element");
      this.#at++;
      if (next === "]") return;
    }
  }

  /** @returns the characters between the quotes, escapes undone */
  #string(): string {
    const start = this.#at++;
    let escaped = false;
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (Number.isNaN(code)) this.fail("");
      if (code < 0x20) this.fail("in string literal");
      this.#at++;
      if (code === 0x22) break;
      if (code !== 0x5c) continue;
      escaped = true;
      this.#escape();
    }
    const raw = this.#text.slice(start, this.#at);
    return escaped ? JSON.parse(raw) : raw.slice(1, -1);
  }

  #escape(): void {
    const kind = this.#text[this.#at] ?? "";
    if (kind === "" || !'"\\/bfnrtu'.includes(kind)) this.fail("in string escape code");
    this.#at++;
    if (kind !== "u") return;
    for (let i = 0; i < 4; i++) {
      if (!/[0-9a-fA-F]/.test(this.#text[this.#at] ?? "")) this.fail("in \\u hexadecimal character escape");
      this.#at++;
    }
  }

  #literal(word: string): void {
    for (const [i, letter] of [...word].entries()) {
      if (this.#text[this.#at] !== letter) this.fail(`in literal ${word} (expecting '${word[i]}')`);
      this.#at++;
    }
  }

  #number(): void {
    if (this.#text[this.#at] === "-") this.#at++;
    if (this.#text[this.#at] === "0") this.#at++;
    else this.#digits("in numeric literal");
    if (this.#text[this.#at] === ".") {
      this.#at++;
      this.#digits("after decimal point in numeric literal");
    }
    if (/[eE]/.test(this.#text[this.#at] ?? "")) {
      this.#at++;
      if (/[+-]/.test(this.#text[this.#at] ?? "")) this.#at++;
      this.#digits("in exponent of numeric literal");
    }
  }

  #digits(where: string): void {
    if (!/\d/.test(this.#text[this.#at] ?? "")) this.fail(where);
    while (/\d/.test(this.#text[this.#at] ?? "")) this.#at++;
  }
}

/** A character between single quotes, as Go writes it. */
function quoted(code: number): string {
  const character = String.fromCodePoint(code);
  const named: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", "'": "\\'" };
  if (named[character]) return `'${named[character]}'`;
  if (code < 0x20 || code === 0x7f) return `'\\x${code.toString(16).padStart(2, "0")}'`;
  if (code < 0xa0 && code > 0x7f) return `'\\u${code.toString(16).padStart(4, "0")}'`;
  return `'${character}'`;
}
