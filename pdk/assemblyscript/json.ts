/** Kinds of a Value. */
export enum Kind { Null, Bool, Number, String, Array, Object }

/** A JSON value. Members and elements that are not there are null values, so that accesses can be chained. */
export class Value {
  kind: Kind = Kind.Null;
  /** A string, decoded; a number as it was written; "true", "false" or "null". "" if the value is not there. */
  text: string = "";
  keys: string[] = [];
  items: Value[] = [];

  get(key: string): Value {
    const i = this.keys.indexOf(key);
    return i < 0 ? new Value() : this.items[i];
  }
  at(index: i32): Value { return index < this.items.length ? this.items[index] : new Value(); }
  string(otherwise: string = ""): string { return this.kind == Kind.String ? this.text : otherwise; }
  number(otherwise: f64 = 0): f64 { return this.kind == Kind.Number ? F64.parseFloat(this.text) : otherwise; }
  integer(otherwise: i64 = 0): i64 { return this.kind == Kind.Number ? I64.parseInt(this.text) : otherwise; }
  bool(otherwise: bool = false): bool { return this.kind == Kind.Bool ? this.text == "true" : otherwise; }

  /** The value as JSON. */
  toString(): string {
    switch (this.kind) {
      case Kind.Null: return "null";
      case Kind.String: return quote(this.text);
      case Kind.Array: return "[" + this.items.map<string>((v) => v.toString()).join(",") + "]";
      case Kind.Object: {
        const members: string[] = [];
        for (let i = 0; i < this.keys.length; i++) members.push(quote(this.keys[i]) + ":" + this.items[i].toString());
        return "{" + members.join(",") + "}";
      }
      default: return this.text;
    }
  }
}

/** A text as JSON, with quotes. */
export function quote(text: string): string {
  const out: string[] = ['"'];
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c >= 0x20 && c != 0x22 && c != 0x5c) continue;
    out.push(text.substring(start, i));
    out.push("\\u" + c.toString(16).padStart(4, "0"));
    start = i + 1;
  }
  out.push(text.substring(start));
  out.push('"');
  return out.join("");
}

/**
 * The deepest nesting that parse accepts: parsing and toString take several calls for each level, and the stack of an
 * interpreted plugin has 2,000.
 */
const maxDepth = 500;

/** Parses JSON (RFC 8259). What is not JSON, or is nested more than 500 deep, gives a value that is not there. */
export function parse(json: string): Value {
  const parser = new Parser(json);
  const value = parser.value(0);
  parser.skip();
  return parser.valid && parser.at == json.length ? value : new Value();
}

/** The number of digits in text from start on. */
function digits(text: string, start: i32): i32 {
  let end = start;
  while (end < text.length && text.charCodeAt(end) >= 0x30 && text.charCodeAt(end) <= 0x39) end++;
  return end - start;
}

function isNumber(text: string): bool {
  let at = text.startsWith("-") ? 1 : 0;
  const whole = digits(text, at);
  if (whole == 0 || (whole > 1 && text.charAt(at) == "0")) return false;
  at += whole;
  if (text.charAt(at) == ".") {
    const fraction = digits(text, at + 1);
    if (fraction == 0) return false;
    at += 1 + fraction;
  }
  if (text.charAt(at) == "e" || text.charAt(at) == "E") {
    at++;
    if (text.charAt(at) == "+" || text.charAt(at) == "-") at++;
    const exponent = digits(text, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == text.length;
}

class Parser {
  at: i32 = 0;
  /** Whether there was no mistake so far. */
  valid: bool = true;
  constructor(private json: string) {}

  /** Skips white space and returns the character after it, 0 at the end. */
  skip(): i32 {
    for (; this.at < this.json.length; this.at++) {
      const c = this.json.charCodeAt(this.at);
      if (c != 0x20 && c != 0x09 && c != 0x0a && c != 0x0d) return c;
    }
    return 0;
  }

  private accept(c: i32): bool {
    if (this.skip() != c) return false;
    this.at++;
    return true;
  }

  value(depth: i32): Value {
    const value = new Value();
    const c = this.skip();
    if (depth >= maxDepth) {
      this.valid = false;
    } else if (c == 0x22) {
      value.kind = Kind.String;
      value.text = this.string();
    } else if (c == 0x7b || c == 0x5b) {
      value.kind = c == 0x7b ? Kind.Object : Kind.Array;
      this.at++;
      this.list(value, depth);
    } else {
      const start = this.at;
      while (this.at < this.json.length && !",]} \t\r\n".includes(this.json.charAt(this.at))) this.at++;
      const text = this.json.substring(start, this.at);
      value.text = text;
      if (text == "true" || text == "false") value.kind = Kind.Bool;
      else if (isNumber(text)) value.kind = Kind.Number;
      else if (text != "null") this.valid = false;
    }
    return value;
  }

  private list(list: Value, depth: i32): void {
    const close = list.kind == Kind.Object ? 0x7d : 0x5d;
    if (this.accept(close)) return;
    do {
      if (list.kind == Kind.Object) {
        list.keys.push(this.string());
        if (!this.accept(0x3a)) this.valid = false;
      }
      if (!this.valid) return;
      list.items.push(this.value(depth + 1));
    } while (this.valid && this.accept(0x2c));
    if (!this.accept(close)) this.valid = false;
  }

  private string(): string {
    if (!this.accept(0x22)) this.valid = false;
    const out: string[] = [];
    let start = this.at;
    for (; this.valid && this.at < this.json.length; this.at++) {
      const c = this.json.charCodeAt(this.at);
      if (c == 0x22) {
        out.push(this.json.substring(start, this.at++));
        return out.join("");
      }
      if (c < 0x20) break;
      if (c != 0x5c) continue;
      out.push(this.json.substring(start, this.at++));
      out.push(this.escape());
      start = this.at + 1;
    }
    this.valid = false;
    return "";
  }

  /** Decodes an escape sequence from the character after the backslash on, and stays at its last character. */
  private escape(): string {
    const i = '"\\/bfnrt'.indexOf(this.json.charAt(this.at));
    if (this.at < this.json.length && i >= 0) return '"\\/\b\f\n\r\t'.charAt(i);
    let unit = 0;
    if (this.json.charAt(this.at) != "u") this.valid = false;
    for (let n = 0; this.valid && n < 4; n++) {
      const c = this.json.charCodeAt(++this.at);
      const letter = c | 0x20;
      if (c >= 0x30 && c <= 0x39) unit = unit << 4 | (c - 0x30);
      else if (letter >= 0x61 && letter <= 0x66) unit = unit << 4 | (letter - 0x57);
      else this.valid = false;
    }
    return String.fromCharCode(unit);
  }
}
