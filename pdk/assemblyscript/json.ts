/** Kinds of a Value. */
export enum Kind { Null, Bool, Number, String, Array, Object }

/** A JSON value. Members and elements that are not there are null values, so that accesses can be chained. */
export class Value {
  kind: Kind = Kind.Null;
  /** A string, decoded; a number as it was written; "true" or "false". */
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

/** Parses JSON. What follows a mistake is left out; the host sends none. */
export function parse(json: string): Value { return new Parser(json).value(0); }

class Parser {
  at: i32 = 0;
  constructor(private json: string) {}

  private skip(): i32 {
    while (this.at < this.json.length && this.json.charCodeAt(this.at) <= 0x20) this.at++;
    return this.at < this.json.length ? this.json.charCodeAt(this.at) : 0;
  }

  value(depth: i32): Value {
    const value = new Value();
    const c = this.skip();
    if (c == 0 || depth > 1000) {
      this.at = this.json.length;
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
      value.text = this.json.substring(start, this.at);
      value.kind = value.text == "null" ? Kind.Null : c == 0x74 || c == 0x66 ? Kind.Bool : Kind.Number;
      if (this.at == start) this.at = this.json.length;
    }
    return value;
  }

  private list(list: Value, depth: i32): void {
    const close = list.kind == Kind.Object ? 0x7d : 0x5d;
    for (let c = this.skip(); c != 0 && c != close; c = this.skip()) {
      if (list.kind == Kind.Object) {
        list.keys.push(this.string());
        this.skip();
        this.at++; // the colon
      }
      list.items.push(this.value(depth + 1));
      if (this.skip() == 0x2c) this.at++;
    }
    this.at++;
  }

  private string(): string {
    const out: string[] = [];
    let start = ++this.at;
    for (; this.at < this.json.length; this.at++) {
      const c = this.json.charCodeAt(this.at);
      if (c == 0x22) break;
      if (c != 0x5c) continue;
      out.push(this.json.substring(start, this.at));
      const escaped = this.json.charAt(++this.at);
      const i = "bfnrt".indexOf(escaped);
      if (escaped == "u") {
        out.push(String.fromCharCode(<i32>I32.parseInt(this.json.substr(this.at + 1, 4), 16)));
        this.at += 4;
      } else {
        out.push(i < 0 ? escaped : "\b\f\n\r\t".charAt(i));
      }
      start = this.at + 1;
    }
    out.push(this.json.substring(start, this.at++));
    return out.join("");
  }
}
