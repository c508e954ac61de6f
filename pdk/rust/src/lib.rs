//! Write [hako](https://github.com/hako-run/hako) plugins in Rust, over ABI 1.
//!
//! A plugin is a module of handlers, built for `wasm32-wasip1` as a `cdylib`:
//!
//! ```ignore
//! #[hako::plugin]
//! mod tools {
//!     use hako::{Call, Result};
//!
//!     #[tool]
//!     fn greet(call: &Call, name: String) -> Result<String> {
//!         Ok(match call.locale() {
//!             "ja" => format!("こんにちは、{name}さん!"),
//!             _ => format!("Hello, {name}!"),
//!         })
//!     }
//! }
//! ```
//!
//! The manifest describes the tools; the host checks arguments against it. [`macro@plugin`] says what handlers there are and what
//! they take. They remain ordinary functions: call them from `cargo test`, or by name with [`testing`]. An instance serves one call
//! at a time and starts each from the same state, so statics do not survive a call. Files are those of `std::fs`, below `/MOUNT`.

mod host;
pub mod http;
mod output;
mod plugin;
pub mod sql;
pub mod testing;

pub use hako_macros::{completer, plugin, prompt, resource, template, tool};
pub use output::{Contents, Json, Message, Output, Prompt};
pub use plugin::{Call, Plugin};
pub use serde;
pub use serde_json;

use serde::Deserialize;
use std::fmt;

/// What `#[plugin]` brings into scope in its module.
#[doc(hidden)]
pub mod attributes {
    pub use hako_macros::{completer, prompt, resource, template, tool};
}

pub type Result<T> = std::result::Result<T, Error>;

/// A failure with a text on which a person or a model can act. Texts and all types of [`std::error::Error`] convert into it,
/// with the code `internal`.
#[derive(Clone, Debug, Deserialize)]
pub struct Error {
    pub code: String,
    pub message: String,
}

/// Codes of an [`Error`], of the plugin or of the host.
pub mod code {
    pub const INVALID: &str = "invalid";
    pub const NOT_FOUND: &str = "not-found";
    pub const NOT_GRANTED: &str = "not-granted";
    pub const LIMIT: &str = "limit";
    pub const TIMEOUT: &str = "timeout";
    pub const CANCELED: &str = "canceled";
    pub const NETWORK: &str = "network";
    pub const CREDENTIAL: &str = "credential";
    pub const CONFLICT: &str = "conflict";
    pub const BUSY: &str = "busy";
    pub const INTERNAL: &str = "internal";
}

impl Error {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Error { code: code.into(), message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: Into<Box<dyn std::error::Error>>> From<E> for Error {
    fn from(error: E) -> Self {
        Error::new(code::INTERNAL, error.into().to_string())
    }
}

/// Levels of [`log`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level {
    Debug = -4,
    Info = 0,
    Warn = 4,
    Error = 8,
}

/// Writes a record to the host's log. Records beyond the call's log limit are dropped.
pub fn log(level: Level, text: &str) {
    host::log(level as i32, text);
}

/// Reports progress to the caller; a total of 0 means unknown. The host sends at most 10 reports a second.
pub fn progress(progress: f64, total: f64, message: &str) {
    host::progress(progress, total, message);
}

/// Says that a resource has changed. Subscribed clients are notified after the call.
pub fn resource_updated(uri: &str) {
    host::updated(uri);
}

/// Reports whether the caller has gone or the time is up. The host stops the plugin anyway.
pub fn is_canceled() -> bool {
    host::canceled()
}

#[doc(hidden)]
pub fn serve_request(length: usize, handlers: fn(&mut Plugin)) -> i32 {
    let request = host::take(length);
    report_panics(&request);
    host::respond(&plugin::serve(&request, handlers));
    0
}

/// Answers a panic with its message: on this target nothing unwinds, so the module traps when the hook returns.
fn report_panics(request: &[u8]) {
    let name = plugin::request_name(request);
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(text), _) => text,
            (_, Some(text)) => text.as_str(),
            _ => "panic",
        };
        let at = panic.location().map(|l| format!(" ({}:{})", l.file(), l.line())).unwrap_or_default();
        host::log(Level::Error as i32, &format!("panic: {message}{at}"));
        let text = format!("{name} stopped unexpectedly: {message}");
        host::respond(&output::failure_of_tool(&text));
    }));
}
