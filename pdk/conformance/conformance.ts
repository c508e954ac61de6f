// The plugin that hako plugin conformance tests the AssemblyScript PDK by.
import * as hako from "./pdk/hako";
import { Result, Response, Value, fail } from "./pdk/hako";
import * as sql from "./pdk/sql";

export { hako_abi_1, hako_call } from "./pdk/hako";

let calls = 0;

function text(text: string): Result { return new Result().text(text); }

function all(): Uint8Array {
  const bytes = new Uint8Array(256);
  for (let i = 0; i < 256; i++) bytes[i] = <u8>i;
  return bytes;
}

hako.tool("echo", (input: Value): Result => text(input.get("text").string()));
hako.tool("add", (input: Value): Result =>
  new Result().structured(`{"sum":${input.get("a").integer() + input.get("b").integer()}}`));
hako.tool("blocks", (input: Value): Result => text("text").image("image/png", all()).audio("audio/wav", all())
  .link("conformance://text", "text", "text/plain").resource("conformance://text", "text/plain", "embedded"));
hako.tool("bytes", (input: Value): Result => {
  const items = input.get("bytes").items;
  const bytes = new Uint8Array(items.length);
  for (let i = 0; i < items.length; i++) bytes[i] = <u8>items[i].integer();
  return text(hako.decodeText(bytes));
});
hako.tool("fail", (input: Value): Result => fail(input.get("message").string()));
hako.tool("panic", (input: Value): Result => { throw new Error(input.get("message").string()); });
hako.tool("progress", (input: Value): Result => {
  const steps = input.get("steps").number();
  for (let i: f64 = 1; i <= steps; i++) hako.progress(i, steps, `step ${<i32>i}`);
  return text("done");
});
hako.tool("log", (input: Value): Result => {
  hako.log(hako.Level.Info, input.get("message").string());
  return text("logged");
});
hako.tool("config", (input: Value): Result => text(hako.config().get("greeting").string()));
hako.tool("locale", (input: Value): Result => text(hako.locale()));
hako.tool("count", (input: Value): Result => text((++calls).toString()));
hako.tool("random", (input: Value): Result => text(Math.random().toString()));
hako.tool("update", (input: Value): Result => {
  hako.resourceUpdated(input.get("uri").string());
  return text("updated");
});
hako.tool("http", (input: Value): Result => {
  const body = Uint8Array.wrap(String.UTF8.encode(input.get("body").string()));
  const r = hako.fetch(input.get("method").string(), input.get("url").string(), "{}", body);
  if (r.code != "") return fail(r.message, r.code);
  return new Result().structured(
    `{"status":${r.status},"type":${hako.quote(r.header("Content-Type"))},"body":${hako.quote(r.text())}}`);
});
hako.tool("parallel", (input: Value): Result => {
  const started = input.get("urls").items.map<hako.Pending>((url) => hako.start("GET", url.string()));
  return text(started.map<string>((p) => p.wait().text()).join("|"));
});

function failed(answer: sql.Result): Result { return fail(answer.message, answer.code); }

hako.tool("exec", (input: Value): Result => {
  const done = sql.exec(input.get("sql").string());
  return done.code != "" ? failed(done) : text(done.changes.toString());
});
hako.tool("query", (input: Value): Result => {
  const found = sql.query(input.get("sql").string(), [sql.text(input.get("text").string())]);
  if (found.code != "") return failed(found);
  const value = found.rows[0][0];
  return text(value.type == sql.Type.Integer ? value.integer.toString() : value.text);
});
hako.tool("copy", (input: Value): Result => {
  const found = sql.query(input.get("sql").string());
  if (found.code != "") return failed(found);
  const copied = sql.query(input.get("into").string(), found.rows[found.rows.length - 1]);
  return copied.code != "" ? failed(copied) : text(copied.rows[0][0].text);
});
hako.tool("transaction", (input: Value): Result => {
  const begun = sql.begin(true);
  if (begun.code != "") return failed(begun);
  const done = sql.exec(input.get("sql").string());
  const ended = input.get("keep").bool() ? sql.commit() : sql.rollback();
  if (done.code != "") return failed(done);
  return ended.code != "" ? failed(ended) : text(done.changes.toString());
});

hako.resource("conformance://text", (uri: string, variables: Value): Result => new Result().contents(uri, "text/plain", "a text"));
hako.resource("conformance://bytes", (uri: string, variables: Value): Result =>
  new Result().contentsBytes(uri, "application/octet-stream", all()));
hako.template("conformance://item/{id}", (uri: string, variables: Value): Result =>
  new Result().contents(uri, "text/plain", "item " + variables.get("id").string()));
hako.prompt("greet", (input: Value): Result => new Result().message("user", "Greet " + input.get("name").string() + "."));
hako.completer("greet", "name", (value: string, resolved: Value): Result => new Result().value(value + "1").value(value + "2"));
