/**
 * Write hako plugins in AssemblyScript, over ABI 1. A plugin registers its handlers at the top level and exports the entry
 * points:
 *
 *     import { tool, Result, Value } from "./pdk/hako";
 *     export { hako_abi_1, hako_call } from "./pdk/hako";
 *
 *     tool("greet", (input: Value): Result => new Result().text("Hello, " + input.get("name").string() + "!"));
 *
 * asconfig.json makes abort and the seed of Math.random use the PDK.
 */
import { setReporter } from "./abort";
import { address, encode, take } from "./host";
import { Kind, Value, parse, quote } from "./json";
export { Kind, Value, parse, quote };

@external("hako:core/1", "respond") declare function hostRespond(p: usize, length: usize): void;
@external("hako:core/1", "blob") declare function hostBlob(p: usize, length: usize): i32;
@external("hako:core/1", "log") declare function hostLog(level: i32, p: usize, length: usize): void;
@external("hako:core/1", "progress") declare function hostProgress(progress: f64, total: f64, p: usize, n: usize): void;
@external("hako:core/1", "updated") declare function hostUpdated(p: usize, length: usize): void;
@external("hako:core/1", "canceled") declare function hostCanceled(): i32;
@external("hako:http/1", "request") declare function hostRequest(head: usize, n: usize, body: usize, m: usize): i32;
@external("hako:http/1", "start") declare function hostStart(head: usize, n: usize, body: usize, m: usize): i32;
@external("hako:http/1", "wait") declare function hostWait(handle: i32): i32;
@external("hako:http/1", "read") declare function hostRead(handle: i32, p: usize, capacity: usize): i32;
@external("hako:http/1", "close") declare function hostClose(handle: i32): void;
@external("wasi_snapshot_preview1", "random_get") declare function randomGet(p: usize, length: usize): i32;

/** The length of the UTF-8 sequence at p, 0 if it is none. */
function sequence(p: usize, left: i32): i32 {
  const c = load<u8>(p);
  const n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  if (n > left) return 0;
  for (let i = 1; i < n; i++) if ((load<u8>(p + i) & 0xc0) != 0x80) return 0;
  const second = n > 1 ? load<u8>(p, 1) : 0;
  const wrong = (c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) || (c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f);
  return wrong ? 0 : n;
}

/** Bytes as text, with U+FFFD for what is not UTF-8, which String.UTF8.decode misreads. */
export function decodeText(bytes: Uint8Array): string {
  const parts: string[] = [];
  let start = 0;
  for (let i = 0; i < bytes.length;) {
    const n = sequence(bytes.dataStart + i, bytes.length - i);
    if (n == 0) {
      parts.push(String.UTF8.decodeUnsafe(bytes.dataStart + start, i - start) + "\uFFFD");
      start = i + 1;
    }
    i += n == 0 ? 1 : n;
  }
  parts.push(String.UTF8.decodeUnsafe(bytes.dataStart + start, bytes.length - start));
  return parts.join("");
}

function attach(data: Uint8Array): string { return hostBlob(data.dataStart, data.length).toString(); }

function respond(json: string): void {
  const data = encode(json);
  hostRespond(address(data), data.byteLength);
}

/** The request of the call. */
let request: Value = new Value();

/** The plugin's configuration, with defaults filled in. */
export function config(): Value { return request.get("config"); }
/** The guest's paths by the host's, for plugins that ask for roots. */
export function roots(): Value { return request.get("roots"); }
/** The caller's language, such as "ja", or "" if it is not known. */
export function locale(): string { return request.get("locale").string(); }
/** Whether the caller has gone or the time is up. */
export function isCanceled(): bool { return hostCanceled() != 0; }

/** Reports progress to the caller; a total of 0 means unknown. */
export function progress(done: f64, total: f64, message: string): void {
  const data = encode(message);
  hostProgress(done, total, address(data), data.byteLength);
}

/** Says that a resource has changed. */
export function resourceUpdated(uri: string): void {
  const data = encode(uri);
  hostUpdated(address(data), data.byteLength);
}

export enum Level { Debug = -4, Info = 0, Warn = 4, Error = 8 }

/** Writes to the host's log. */
export function log(level: Level, text: string): void {
  const data = encode(text);
  hostLog(level, address(data), data.byteLength);
}

/** What a handler returns: content blocks of a tool, contents of a resource, messages of a prompt or values of a completion. */
export class Result {
  items: string[] = [];
  structuredContent: string = "";
  description: string = "";
  code: string = "";
  error: string = "";
  isError: bool = false;

  add(json: string): Result {
    this.items.push(json);
    return this;
  }
  text(text: string): Result { return this.add('{"type":"text","text":' + quote(text) + "}"); }
  image(mimeType: string, data: Uint8Array): Result { return this.data("image", mimeType, data); }
  audio(mimeType: string, data: Uint8Array): Result { return this.data("audio", mimeType, data); }
  private data(type: string, mimeType: string, data: Uint8Array): Result {
    return this.add('{"type":"' + type + '","mimeType":' + quote(mimeType) + ',"blob":' + attach(data) + "}");
  }
  link(uri: string, name: string, mimeType: string): Result {
    return this.add('{"type":"resource_link","uri":' + quote(uri) + ',"name":' + quote(name) + ',"mimeType":' + quote(mimeType) + "}");
  }
  resource(uri: string, mimeType: string, text: string): Result {
    return this.add('{"type":"resource","resource":' + contents(uri, mimeType) + ',"text":' + quote(text) + "}}");
  }
  /** Sets the structured content, as JSON. */
  structured(json: string): Result {
    this.structuredContent = json;
    return this;
  }

  contents(uri: string, mimeType: string, text: string): Result {
    return this.add(contents(uri, mimeType) + ',"text":' + quote(text) + "}");
  }
  contentsBytes(uri: string, mimeType: string, data: Uint8Array): Result {
    return this.add(contents(uri, mimeType) + ',"blob":' + attach(data) + "}");
  }
  message(role: string, text: string): Result {
    return this.add('{"role":' + quote(role) + ',"content":{"type":"text","text":' + quote(text) + "}}");
  }
  value(value: string): Result { return this.add(quote(value)); }
}

function contents(uri: string, mimeType: string): string { return '{"uri":' + quote(uri) + ',"mimeType":' + quote(mimeType); }

/** A failure of the tool, with a text on which a model can act. code is that of an error of the host, or "". */
export function fail(message: string, code: string = ""): Result {
  const result = new Result();
  result.isError = true;
  result.code = code;
  result.error = message;
  return result;
}

type Tool = (input: Value) => Result;
type Resource = (uri: string, variables: Value) => Result;
type Completer = (value: string, resolved: Value) => Result;
const tools = new Map<string, Tool>();
const resources = new Map<string, Resource>();
const templates = new Map<string, Resource>();
const prompts = new Map<string, Tool>();
const completers = new Map<string, Completer>();

export function tool(name: string, handle: Tool): void { tools.set(name, handle); }
export function resource(uri: string, handle: Resource): void { resources.set(uri, handle); }
/** The handler gets the URI and the values of the template's variables. */
export function template(uriTemplate: string, handle: Resource): void { templates.set(uriTemplate, handle); }
export function prompt(name: string, handle: Tool): void { prompts.set(name, handle); }
/** Proposes values for an argument of a prompt, or a variable of a template. */
export function completer(target: string, argument: string, handle: Completer): void {
  completers.set(target + " " + argument, handle);
}

function notFound(kind: string, name: string): Result {
  return fail("this plugin has no handler for the " + kind + " " + name, "not-found");
}

function serve(method: string): Result {
  const name = request.get("name").string();
  const uri = request.get("uri").string();
  if (method == "tools/call") return tools.has(name) ? tools.get(name)(request.get("arguments")) : notFound("tool", name);
  if (method == "prompts/get") return prompts.has(name) ? prompts.get(name)(request.get("arguments")) : notFound("prompt", name);
  if (method == "resources/read") {
    const uriTemplate = request.get("template").string();
    if (templates.has(uriTemplate)) return templates.get(uriTemplate)(uri, request.get("variables"));
    return resources.has(uri) ? resources.get(uri)(uri, new Value()) : notFound("resource", uri);
  }
  if (method == "completion/complete") {
    const ref = request.get("ref");
    const argument = request.get("argument");
    const key = ref.get("name").string(ref.get("uri").string()) + " " + argument.get("name").string();
    return completers.has(key) ? completers.get(key)(argument.get("value").string(), argument.get("resolved")) : new Result();
  }
  return notFound("method", method);
}

function answer(method: string, result: Result): string {
  const isTool = method == "tools/call";
  if (result.isError && (!isTool || result.code == "not-found")) {
    const code = result.code == "" ? "internal" : result.code;
    return '{"error":{"code":' + quote(code) + ',"message":' + quote(result.error) + "}}";
  }
  if (result.isError) result.text(result.code == "" ? result.error : result.code + ": " + result.error);
  const items = "[" + result.items.join(",") + "]";
  if (method == "resources/read") return '{"contents":' + items + "}";
  if (method == "prompts/get") return '{"messages":' + items + ',"description":' + quote(result.description) + "}";
  if (method == "completion/complete") return '{"completion":{"values":' + items + "}}";
  const structured = result.structuredContent == "" || result.isError ? "" : ',"structuredContent":' + result.structuredContent;
  return '{"isError":' + result.isError.toString() + ',"content":' + items + structured + "}";
}

function names<T>(handlers: Map<string, T>): string { return "[" + handlers.keys().map<string>((k) => quote(k)).join(",") + "]"; }

export function hako_abi_1(): void {}

export function hako_call(length: i32): i32 {
  NativeMath.seedRandom(reinterpret<i64>(seed()));
  setReporter(reportAbort);
  request = parse(take(length));
  const method = request.get("method").string();
  if (method == "hako/handlers") {
    respond('{"handlers":{"tools":' + names(tools) + ',"resources":' + names(resources) +
      ',"resourceTemplates":' + names(templates) + ',"prompts":' + names(prompts) + "}}");
  } else {
    respond(answer(method, serve(method)));
  }
  return 0;
}

/** Responds with the message of an abort, before the module traps. */
function reportAbort(message: string | null, file: string | null, line: u32): void {
  const text = message === null ? "abort" : message;
  log(Level.Error, "abort: " + text + " (" + (file === null ? "" : file) + ":" + line.toString() + ")");
  respond(answer("tools/call", fail(request.get("name").string() + " stopped unexpectedly: " + text)));
}
/** A seed for Math.random. */
export function seed(): f64 {
  const data = new ArrayBuffer(8);
  randomGet(address(data), 8);
  return load<f64>(address(data));
}

/** A response of any status, or an error: then code is not empty. */
export class Response {
  code: string = "";
  message: string = "";
  status: i32 = 0;
  /** The head, with "headers", "url" and "credential". */
  head: Value = new Value();
  body: Uint8Array = new Uint8Array(0);

  header(name: string): string { return this.head.get("headers").get(name).at(0).string(); }
  text(): string { return decodeText(this.body); }
}

function failed(error: Value): Response {
  const response = new Response();
  response.code = error.get("code").string("internal");
  response.message = error.get("message").string();
  return response;
}

function receive(length: i32): Response {
  const head = parse(take(length));
  if (head.get("error").kind == Kind.Object) return failed(head.get("error"));
  const response = new Response();
  response.head = head;
  response.status = <i32>head.get("status").integer();
  const handle = <i32>head.get("handle").integer();
  const chunk = new Uint8Array(1 << 16);
  let n = hostRead(handle, chunk.dataStart, chunk.length);
  for (; n > 0; n = hostRead(handle, chunk.dataStart, chunk.length)) {
    const body = new Uint8Array(response.body.length + n);
    body.set(response.body);
    memory.copy(body.dataStart + response.body.length, chunk.dataStart, n);
    response.body = body;
  }
  hostClose(handle);
  return n < 0 ? failed(parse(take(-n))) : response;
}

function requestHead(method: string, url: string, headers: string): ArrayBuffer {
  return encode('{"method":' + quote(method) + ',"url":' + quote(url) + ',"headers":' + headers + "}");
}

/** Sends a request and reads the response. headers is JSON, such as {"Accept":["text/plain"]}. */
export function fetch(method: string, url: string, headers: string = "{}", body: Uint8Array = new Uint8Array(0)): Response {
  const head = requestHead(method, url, headers);
  return receive(hostRequest(address(head), head.byteLength, body.dataStart, body.length));
}

/** A request under way. */
export class Pending {
  constructor(private handle: i32, private failure: Response) {}
  wait(): Response { return this.handle < 0 ? this.failure : receive(hostWait(this.handle)); }
}

/** Sends a request without waiting for the response. A call has at most 8 under way. */
export function start(method: string, url: string, headers: string = "{}", body: Uint8Array = new Uint8Array(0)): Pending {
  const head = requestHead(method, url, headers);
  const handle = hostStart(address(head), head.byteLength, body.dataStart, body.length);
  return new Pending(handle, handle < 0 ? failed(parse(take(-handle))) : new Response());
}
