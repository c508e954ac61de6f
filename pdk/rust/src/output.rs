//! What handlers return, and its JSON.

use crate::{code, host, Error, Result};
use serde::Serialize;
use serde_json::{json, Value};

/// From this length on, in bytes, a text crosses as raw bytes, which is cheaper than JSON.
const LONG_TEXT: usize = 1 << 10;

/// How many texts cross so: the host accepts 256 blobs, which a response may need for its binary parts.
const MAX_TEXTS: usize = 64;

/// The result of a tool: content blocks for the model and, if the tool has an output schema, structured content. Without
/// content the host shows the structured content as text.
#[derive(Debug, Default)]
pub struct Output {
    pub content: Vec<Value>,
    pub structured: Option<Value>,
    pub is_error: bool,
    texts: usize,
}

impl Output {
    pub fn new() -> Self {
        Output::default()
    }

    /// Adds a text block.
    pub fn text(mut self, text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        let long = cfg!(target_arch = "wasm32") && text.len() >= LONG_TEXT && self.texts < MAX_TEXTS;
        self.texts += usize::from(long);
        self.block(if long { json!({"type": "text", "blob": host::blob(text.as_bytes())}) } else { json!({"type": "text", "text": text}) })
    }

    /// Adds an image, such as of the type `image/png`.
    pub fn image(self, mime_type: &str, data: &[u8]) -> Self {
        self.block(json!({"type": "image", "mimeType": mime_type, "blob": host::blob(data)}))
    }

    /// Adds a sound, such as of the type `audio/wav`.
    pub fn audio(self, mime_type: &str, data: &[u8]) -> Self {
        self.block(json!({"type": "audio", "mimeType": mime_type, "blob": host::blob(data)}))
    }

    /// Adds a link to a resource.
    pub fn link(self, uri: &str, name: &str, mime_type: &str) -> Self {
        self.block(json!({"type": "resource_link", "uri": uri, "name": name, "mimeType": mime_type}))
    }

    /// Adds a resource.
    pub fn resource(self, contents: Contents) -> Self {
        self.block(json!({"type": "resource", "resource": contents.0}))
    }

    /// Adds a block as docs/abi.md describes it, for annotations.
    pub fn block(mut self, block: Value) -> Self {
        self.content.push(block);
        self
    }

    /// Sets the structured content. A value that has no JSON, such as a map whose keys are no texts, is an error.
    pub fn structured(mut self, value: impl Serialize) -> Result<Self> {
        self.structured = Some(serde_json::to_value(value)?);
        Ok(self)
    }

    /// Marks the result as a failure of the tool.
    pub fn as_error(mut self) -> Self {
        self.is_error = true;
        self
    }

    pub(crate) fn response(self) -> Value {
        let mut response = json!({"content": self.content, "isError": self.is_error});
        if let Some(structured) = self.structured {
            response["structuredContent"] = structured;
        }
        response
    }
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Output::new().text(text)
    }
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        Output::new().text(text)
    }
}

/// A value that becomes the structured content.
pub struct Json<T>(pub T);

impl<T: Serialize> TryFrom<Json<T>> for Output {
    type Error = Error;
    fn try_from(value: Json<T>) -> Result<Self> {
        Output::new().structured(value.0)
    }
}

/// The contents of a resource.
#[derive(Debug)]
pub struct Contents(pub(crate) Value);

impl Contents {
    pub fn text(uri: &str, mime_type: &str, text: &str) -> Self {
        Contents(json!({"uri": uri, "mimeType": mime_type, "text": text}))
    }

    pub fn bytes(uri: &str, mime_type: &str, data: &[u8]) -> Self {
        Contents(json!({"uri": uri, "mimeType": mime_type, "blob": host::blob(data)}))
    }
}

/// The result of a prompt.
#[derive(Debug, Serialize)]
pub struct Prompt {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub messages: Vec<Message>,
}

/// A message of a prompt; the role is `user` or `assistant`, the content a block as docs/abi.md describes it.
#[derive(Debug, Serialize)]
pub struct Message {
    pub role: String,
    pub content: Value,
}

impl Message {
    pub fn user(text: &str) -> Self {
        Message { role: "user".into(), content: json!({"type": "text", "text": text}) }
    }

    pub fn assistant(text: &str) -> Self {
        Message { role: "assistant".into(), content: json!({"type": "text", "text": text}) }
    }
}

/// The response for an error: that of a tool is a result for the model, in which a code of the host is shown.
pub(crate) fn failure(error: &Error, tool: bool) -> Value {
    if !tool || error.code == code::NOT_FOUND {
        return json!({"error": {"code": error.code, "message": error.message}});
    }
    let text = if error.code == code::INTERNAL { error.message.clone() } else { format!("{}: {}", error.code, error.message) };
    Output::new().text(text).as_error().response()
}

/// The response of a tool that failed, as bytes.
pub(crate) fn failure_of_tool(text: &str) -> Vec<u8> {
    json!({"isError": true, "content": [{"type": "text", "text": text}]}).to_string().into_bytes()
}
