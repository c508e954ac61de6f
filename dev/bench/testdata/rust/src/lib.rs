//! A guest with one tool, echo, which returns its text.
use serde_json::{json, Value};

#[link(wasm_import_module = "hako:core/1")]
extern "C" {
    fn take(to: *mut u8);
    fn respond(from: *const u8, length: usize);
}

#[no_mangle]
pub extern "C" fn hako_abi_1() {}

#[no_mangle]
pub extern "C" fn hako_call(length: usize) -> i32 {
    let mut request = vec![0u8; length];
    unsafe { take(request.as_mut_ptr()) };
    let response = match serde_json::from_slice::<Value>(&request) {
        Ok(request) => serve(&request),
        Err(error) => json!({"error": {"code": "invalid", "message": error.to_string()}}),
    };
    let out = response.to_string();
    unsafe { respond(out.as_ptr(), out.len()) };
    0
}

fn serve(request: &Value) -> Value {
    match (request["method"].as_str(), request["arguments"]["text"].as_str()) {
        (Some("tools/call"), Some(text)) => json!({"content": [{"type": "text", "text": text}]}),
        (Some("hako/handlers"), _) => json!({"handlers": {"tools": ["echo"]}}),
        _ => json!({"error": {"code": "not-found", "message": "no such tool"}}),
    }
}
