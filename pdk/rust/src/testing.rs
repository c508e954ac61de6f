//! Calls handlers by name in `cargo test`, natively.

use crate::{plugin, Plugin};
use serde_json::{json, Value};

/// Serves a request of docs/abi.md and returns the response.
pub fn request(handlers: fn(&mut Plugin), request: Value) -> Value {
    serde_json::from_slice(&plugin::serve(request.to_string().as_bytes(), handlers)).expect("responses are JSON")
}

/// Calls a tool. The response has `content`, `structuredContent` and `isError`.
pub fn call_tool(handlers: fn(&mut Plugin), name: &str, arguments: Value, locale: &str) -> Value {
    request(handlers, json!({"method": "tools/call", "name": name, "arguments": arguments, "locale": locale}))
}
