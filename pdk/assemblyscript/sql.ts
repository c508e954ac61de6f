// The plugin's database, permission sql:
//
//     const found = sql.query("SELECT id, image FROM photo WHERE title = ?", [sql.text("海")]);
//     if (found.code != "") return fail(found.message, found.code);
//     const id = found.rows[0][0].integer;
import { address, encode, take, takeBytes } from "./host";
import { Kind, Value as Json, parse, quote } from "./json";

@external("hako:sql/1", "query") declare function hostQuery(head: usize, n: usize, blobs: usize, m: usize): i32;
@external("hako:sql/1", "exec") declare function hostExec(head: usize, n: usize, blobs: usize, m: usize): i32;
@external("hako:sql/1", "blobs") declare function hostBlobs(): i32;
@external("hako:sql/1", "begin") declare function hostBegin(write: i32): i32;
@external("hako:sql/1", "commit") declare function hostCommit(): i32;
@external("hako:sql/1", "rollback") declare function hostRollback(): i32;

export enum Type { Null, Integer, Real, Text, Blob }

/** A value of SQLite: the field of its type has it, the others are empty. */
export class Value {
  integer: i64 = 0;
  real: f64 = 0;
  text: string = "";
  blob: Uint8Array = new Uint8Array(0);
  constructor(public type: Type = Type.Null) {}
}

/** NULL. */
export function none(): Value { return new Value(); }

export function integer(value: i64): Value {
  const v = new Value(Type.Integer);
  v.integer = value;
  return v;
}

/** Not NaN, which SQL does not know. */
export function real(value: f64): Value {
  const v = new Value(Type.Real);
  v.real = value;
  return v;
}

export function text(value: string): Value {
  const v = new Value(Type.Text);
  v.text = value;
  return v;
}

export function blob(value: Uint8Array): Value {
  const v = new Value(Type.Blob);
  v.blob = value;
  return v;
}

/** What a query found or a statement changed, or an error: then code is not empty. */
export class Result {
  code: string = "";
  message: string = "";
  columns: string[] = [];
  rows: Value[][] = [];
  changes: i64 = 0;
  lastInsertId: i64 = 0;
}

/** Runs a statement and returns its rows. args has a value for each parameter. */
export function query(sql: string, args: Value[] = []): Result { return run(sql, args, true); }

/** Runs a statement and returns what it changed. */
export function exec(sql: string, args: Value[] = []): Result { return run(sql, args, false); }

/** Starts a transaction, which is undone unless the call commits it. Without write it only reads. */
export function begin(write: bool): Result { return receive(hostBegin(write ? 1 : 0)); }
export function commit(): Result { return receive(hostCommit()); }
export function rollback(): Result { return receive(hostRollback()); }

function run(sql: string, args: Value[], isQuery: bool): Result {
  const values: string[] = [];
  let size = 0;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i];
    if (arg.type == Type.Real && isNaN(arg.real)) return failed("invalid", "SQL does not know NaN");
    values.push(toJSON(arg));
    size += arg.blob.length;
  }
  const blobs = new Uint8Array(size);
  for (let i = 0, at = 0; i < args.length; i++) {
    blobs.set(args[i].blob, at);
    at += args[i].blob.length;
  }
  const head = encode(`{"sql":${quote(sql)},"args":[${values.join(",")}]}`);
  return receive(isQuery
    ? hostQuery(address(head), head.byteLength, blobs.dataStart, blobs.length)
    : hostExec(address(head), head.byteLength, blobs.dataStart, blobs.length));
}

/** A REAL has a fraction or an exponent. */
function toJSON(value: Value): string {
  switch (value.type) {
    case Type.Integer: return value.integer.toString();
    case Type.Real: return isFinite(value.real) ? value.real.toString() : value.real > 0 ? "9e999" : "-9e999";
    case Type.Text: return quote(value.text);
    case Type.Blob: return `{"blob":${value.blob.length}}`;
    default: return "null";
  }
}

function failed(code: string, message: string): Result {
  const result = new Result();
  result.code = code;
  result.message = message;
  return result;
}

function receive(length: i32): Result {
  const answer = parse(length == 0 ? "{}" : take(length));
  const error = answer.get("error");
  if (error.kind == Kind.Object) return failed(error.get("code").string("internal"), error.get("message").string());
  const result = new Result();
  result.columns = answer.get("columns").items.map<string>((name) => name.string());
  result.changes = answer.get("changes").integer();
  result.lastInsertId = answer.get("lastInsertId").integer();
  const rows = answer.get("rows").items;
  const blobs = new Blobs();
  for (let i = 0; i < rows.length; i++) {
    const row: Value[] = [];
    for (let j = 0; j < rows[i].items.length; j++) row.push(fromJSON(rows[i].items[j], blobs));
    result.rows.push(row);
  }
  return result;
}

/** The blobs of an answer. */
class Blobs {
  private bytes: ArrayBuffer | null = null;
  private at: i32 = 0;

  next(length: i32): Uint8Array {
    let bytes = this.bytes;
    if (bytes === null) this.bytes = bytes = takeBytes(hostBlobs());
    this.at += length;
    return Uint8Array.wrap(bytes.slice(this.at - length, this.at));
  }
}

function isReal(number: string): bool { return number.includes(".") || number.includes("e"); }

function fromJSON(value: Json, blobs: Blobs): Value {
  switch (value.kind) {
    case Kind.Number: return isReal(value.text) ? real(value.number()) : integer(value.integer());
    case Kind.String: return text(value.text);
    case Kind.Object: return blob(blobs.next(<i32>value.get("blob").integer()));
    default: return none();
  }
}
