// Runs a plugin in Node, for tests: the functions of hako:core/1 with a host that records, and no other permissions.
import { readFileSync } from "node:fs";
import { randomFillSync } from "node:crypto";

// callTool calls a tool of the module in file and returns the response.
export function callTool(file, name, args, { locale } = {}) {
  return request(file, { method: "tools/call", name, arguments: args, locale });
}

// request serves a request of docs/abi.md.
export function request(file, message) {
  let pending = Buffer.from(JSON.stringify(message));
  const length = pending.length;
  let response;
  let blobs = 0;
  let memory;
  const read = (p, n) => Buffer.from(memory.buffer, p >>> 0, n >>> 0).toString();
  const core = {
    take: (p) => new Uint8Array(memory.buffer, p >>> 0).set(pending),
    respond: (p, n) => { response = JSON.parse(read(p, n)); },
    blob: () => blobs++,
    log: (level, p, n) => console.error(level, read(p, n)),
    progress: () => {},
    updated: () => {},
    canceled: () => 0,
  };
  const absent = new Proxy({}, { get: (_, name) => () => { throw new Error(`${name} needs the host`); } });
  const wasi = { random_get: (p, n) => (randomFillSync(new Uint8Array(memory.buffer, p >>> 0, n)), 0) };
  const imports = { "hako:core/1": core, "hako:http/1": absent, "hako:sql/1": absent, wasi_snapshot_preview1: wasi };
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(file)), imports);
  memory = exports.memory;
  exports._initialize();
  try {
    exports.hako_call(length);
  } catch (error) {
    if (!response) throw error; // a failure that was reported before a trap is the answer
  }
  return response;
}
