//! Handlers and the requests to them.

use crate::output::{self, Contents, Output, Prompt};
use crate::{code, Error, Result};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{json, Value};
use std::collections::{BTreeMap, HashMap};

#[derive(Deserialize)]
struct Request<'a> {
    method: String,
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(default)]
    uri: String,
    #[serde(default)]
    template: String,
    #[serde(borrow)]
    variables: Option<&'a RawValue>,
    #[serde(default, rename = "ref")]
    reference: Reference,
    #[serde(borrow, default)]
    argument: Argument<'a>,
    #[serde(flatten)]
    call: Call,
}

#[derive(Default, Deserialize)]
struct Reference {
    #[serde(default)]
    name: String,
    #[serde(default)]
    uri: String,
}

#[derive(Default, Deserialize)]
struct Argument<'a> {
    name: String,
    value: String,
    #[serde(borrow)]
    resolved: Option<&'a RawValue>,
}

/// What every request has.
#[derive(Debug, Default, Deserialize)]
pub struct Call {
    #[serde(default)]
    config: Value,
    #[serde(default)]
    roots: HashMap<String, String>,
    #[serde(default)]
    locale: String,
    #[serde(default, rename = "deadlineMs")]
    deadline_ms: u64,
}

impl Call {
    /// Decodes the plugin's configuration, with defaults filled in.
    pub fn config<T: DeserializeOwned>(&self) -> Result<T> {
        let config = if self.config.is_null() { json!({}) } else { self.config.clone() };
        serde_json::from_value(config).map_err(|error| format!("configuration: {error}").into())
    }

    /// The guest's paths by the host's, for plugins whose manifest asks for roots.
    pub fn roots(&self) -> &HashMap<String, String> {
        &self.roots
    }

    /// The caller's language, a BCP 47 tag such as `ja`, or an empty text if it is not known.
    pub fn locale(&self) -> &str {
        &self.locale
    }

    /// The time that the call had when it started. Zero means that it is not known.
    pub fn time_left(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.deadline_ms)
    }
}

/// Values by name: the arguments of a tool or prompt, the variables of a template.
type Values<'a> = Option<&'a RawValue>;

type Tool = Box<dyn Fn(&Call, Values) -> Result<Output>>;
type Resource = Box<dyn Fn(&Call, &str) -> Result<Vec<Contents>>>;
type Template = Box<dyn Fn(&Call, &str, Values) -> Result<Vec<Contents>>>;
type PromptHandler = Box<dyn Fn(&Call, Values) -> Result<Prompt>>;
type Completer = Box<dyn Fn(&Call, &str, Values) -> Result<Vec<String>>>;

/// The handlers of a plugin, by the names in its manifest.
#[derive(Default)]
pub struct Plugin {
    tools: BTreeMap<&'static str, Tool>,
    resources: BTreeMap<&'static str, Resource>,
    templates: BTreeMap<&'static str, Template>,
    prompts: BTreeMap<&'static str, PromptHandler>,
    completers: BTreeMap<(&'static str, &'static str), Completer>,
}

impl Plugin {
    /// Registers the handler of a tool. The arguments, which match the input schema, are decoded with serde. The result is a
    /// text, [`crate::Json`] or an [`Output`]. An error is a failure of the tool, whose text goes to the model.
    pub fn tool<In, Out>(&mut self, name: &'static str, handle: impl Fn(&Call, In) -> Result<Out> + 'static)
    where
        In: DeserializeOwned,
        Out: TryInto<Output>,
        Error: From<Out::Error>,
    {
        let decode_and_handle = move |call: &Call, arguments: Values| Ok(handle(call, decode(name, arguments)?)?.try_into()?);
        register(&mut self.tools, name, Box::new(decode_and_handle));
    }

    /// Registers the handler of the resource with this URI.
    pub fn resource(&mut self, uri: &'static str, handle: impl Fn(&Call, &str) -> Result<Vec<Contents>> + 'static) {
        register(&mut self.resources, uri, Box::new(handle));
    }

    /// Registers the handler of a resource template, which gets the URI and the template's variables. These are texts, decoded
    /// with serde, such as into a map.
    pub fn template<In: DeserializeOwned>(
        &mut self,
        uri_template: &'static str,
        handle: impl Fn(&Call, &str, In) -> Result<Vec<Contents>> + 'static,
    ) {
        let decode_and_handle =
            move |call: &Call, uri: &str, variables: Values| handle(call, uri, decode(uri_template, variables)?);
        register(&mut self.templates, uri_template, Box::new(decode_and_handle));
    }

    /// Registers the handler of a prompt. The arguments are texts, decoded with serde, such as into a map.
    pub fn prompt<In: DeserializeOwned>(
        &mut self,
        name: &'static str,
        handle: impl Fn(&Call, In) -> Result<Prompt> + 'static,
    ) {
        let decode_and_handle = move |call: &Call, arguments: Values| handle(call, decode(name, arguments)?);
        register(&mut self.prompts, name, Box::new(decode_and_handle));
    }

    /// Registers what proposes values for an argument of a prompt, or for a variable of a template, that start with a text. It
    /// also gets the arguments that were given before: texts, decoded with serde.
    pub fn completer<In: DeserializeOwned>(
        &mut self,
        of: &'static str,
        argument: &'static str,
        handle: impl Fn(&Call, &str, In) -> Result<Vec<String>> + 'static,
    ) {
        let decode_and_handle = move |call: &Call, text: &str, resolved: Values| handle(call, text, decode(of, resolved)?);
        register(&mut self.completers, (of, argument), Box::new(decode_and_handle));
    }

    fn serve(&self, request: &Request) -> Result<Value> {
        match request.method.as_str() {
            "tools/call" => {
                let handle = self.tools.get(&*request.name).ok_or_else(|| not_found("tool", &request.name))?;
                Ok(handle(&request.call, request.arguments)?.response())
            }
            "resources/read" => {
                let contents = match (self.templates.get(&*request.template), self.resources.get(&*request.uri)) {
                    (Some(handle), _) => handle(&request.call, &request.uri, request.variables)?,
                    (_, Some(handle)) => handle(&request.call, &request.uri)?,
                    _ => return Err(not_found("resource", &request.uri)),
                };
                Ok(json!({"contents": contents.into_iter().map(|c| c.0).collect::<Vec<_>>()}))
            }
            "prompts/get" => {
                let handle = self.prompts.get(&*request.name).ok_or_else(|| not_found("prompt", &request.name))?;
                Ok(serde_json::to_value(handle(&request.call, request.arguments)?)?)
            }
            "completion/complete" => self.complete(request),
            "hako/handlers" => Ok(json!({"handlers": {
                "tools": self.tools.keys().collect::<Vec<_>>(),
                "resources": self.resources.keys().collect::<Vec<_>>(),
                "resourceTemplates": self.templates.keys().collect::<Vec<_>>(),
                "prompts": self.prompts.keys().collect::<Vec<_>>(),
            }})),
            method => Err(not_found("method", method)),
        }
    }

    fn complete(&self, request: &Request) -> Result<Value> {
        let of = if request.reference.name.is_empty() { &request.reference.uri } else { &request.reference.name };
        let values = match self.completers.get(&(of.as_str(), request.argument.name.as_str())) {
            Some(handle) => handle(&request.call, &request.argument.value, request.argument.resolved)?,
            None => Vec::new(),
        };
        const MOST: usize = 100; // of MCP
        let shown = &values[..values.len().min(MOST)];
        Ok(json!({"completion": {"values": shown, "total": values.len(), "hasMore": values.len() > MOST}}))
    }
}

fn decode<In: DeserializeOwned>(of: &str, values: Values) -> Result<In> {
    let values = values.map_or("{}", RawValue::get);
    serde_json::from_str(values).map_err(|error| Error::new(code::INVALID, format!("arguments of {of}: {error}")))
}

/// Panics if there is a handler for the name already.
fn register<K: Ord + Copy + std::fmt::Debug, H>(handlers: &mut BTreeMap<K, H>, name: K, handle: H) {
    assert!(handlers.insert(name, handle).is_none(), "two handlers for {name:?}");
}

fn not_found(kind: &str, name: &str) -> Error {
    Error::new(code::NOT_FOUND, format!("this plugin has no handler for the {kind} {name}"))
}

/// Serves a request and returns the response.
pub(crate) fn serve(request: &[u8], handlers: fn(&mut Plugin)) -> Vec<u8> {
    let response = match serde_json::from_slice::<Request>(request) {
        Ok(request) => {
            let mut plugin = Plugin::default();
            handlers(&mut plugin);
            plugin.serve(&request).unwrap_or_else(|error| output::failure(&error, request.method == "tools/call"))
        }
        Err(error) => output::failure(&Error::new(code::INVALID, format!("request: {error}")), false),
    };
    response.to_string().into_bytes()
}

/// The tool or prompt of a request.
pub(crate) fn request_name(request: &[u8]) -> String {
    serde_json::from_slice::<Request>(request).map(|r| r.name).unwrap_or_default()
}
