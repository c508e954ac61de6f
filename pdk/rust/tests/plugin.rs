//! Calls handlers of all kinds that `#[hako::plugin]` finds.

use hako::testing::{call_tool, request};
use hako::Plugin;
use serde_json::{json, Value};

#[hako::plugin]
mod tools {
    use hako::serde::Deserialize;
    use hako::{Call, Contents, Message, Output, Prompt, Result};
    use std::collections::HashMap;

    #[derive(Deserialize)]
    #[serde(crate = "hako::serde")]
    pub struct Point {
        pub x: i32,
        pub y: i32,
    }

    /// A doc comment.
    #[tool]
    pub fn greet(call: &Call, name: String, times: Option<u32>) -> Result<String> {
        Ok(format!("{}: Hello, {name}!", call.locale()).repeat(times.unwrap_or(1) as usize))
    }

    #[tool("other_name")]
    fn plugin(mut call: String, #[serde(default)] values: Vec<u32>, #[serde(rename = "for")] text: String) -> Result<String> {
        call.push_str(&text);
        Ok(format!("{call} {values:?}"))
    }

    #[hako::tool]
    fn r#move(_: &Call, r#type: String) -> Result<Output> {
        Ok(r#type.into())
    }

    #[tool]
    fn distance(#[arguments] Point { x, y }: Point) -> Result<String> {
        Ok((x.abs() + y.abs()).to_string())
    }

    #[tool]
    fn sum(_call: &Call, points: Vec<Point>) -> Result<&'static str> {
        Ok(if points.iter().map(|p| p.x + p.y).sum::<i32>() > 0 { "positive" } else { "negative" })
    }

    #[tool]
    fn nothing() -> Result<String> {
        Err("no".into())
    }

    #[cfg(target_arch = "wasm32")]
    #[tool]
    fn system() -> Result<&'static str> {
        Ok("wasm")
    }

    #[cfg(not(target_arch = "wasm32"))]
    #[tool]
    fn system() -> Result<&'static str> {
        Ok("native")
    }

    #[resource("test://one")]
    #[resource("test://two")]
    fn resource(uri: &str) -> Result<Vec<Contents>> {
        Ok(vec![Contents::text(uri, "text/plain", "a text")])
    }

    #[template("test://{kind}/{id}{?q*}")]
    fn template(_: &Call, uri: &str, id: String, q: Option<String>) -> Result<Vec<Contents>> {
        Ok(vec![Contents::text(uri, "text/plain", &format!("{id} {q:?}"))])
    }

    #[derive(Deserialize)]
    #[serde(crate = "hako::serde", rename_all = "lowercase")]
    enum Tone {
        Warm,
        Cold,
    }

    #[prompt]
    fn letter(to: String, tone: Option<Tone>) -> Result<Prompt> {
        let tone = match tone {
            Some(Tone::Warm) => "warm",
            Some(Tone::Cold) => "cold",
            None => "plain",
        };
        Ok(Prompt { description: String::new(), messages: vec![Message::user(&format!("{to}: {tone}"))] })
    }

    #[completer(of = "letter", argument = "to")]
    fn names(start: &str, tone: Option<String>) -> Result<Vec<String>> {
        Ok(vec![format!("{start}1 {tone:?}")])
    }

    #[completer(of = "letter", argument = "tone")]
    fn tones(_: &Call, #[arguments] given: HashMap<String, String>) -> Result<Vec<String>> {
        Ok(given.into_values().collect())
    }
}

fn text(response: Value) -> String {
    response["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}")).to_string()
}

fn call(name: &str, arguments: Value) -> String {
    text(call_tool(tools::handlers, name, arguments, "en"))
}

#[test]
fn calls_tools() {
    assert_eq!(call("greet", json!({"name": "Aki"})), "en: Hello, Aki!");
    assert_eq!(call("greet", json!({"name": "Aki", "times": 2})), "en: Hello, Aki!en: Hello, Aki!");
    assert_eq!(call("other_name", json!({"call": "a", "for": "b"})), "ab []");
    assert_eq!(call("other_name", json!({"call": "a", "for": "b", "values": [1, 2]})), "ab [1, 2]");
    assert_eq!(call("move", json!({"type": "t"})), "t");
    assert_eq!(call("distance", json!({"x": -3, "y": 4})), "7");
    assert_eq!(call("sum", json!({"points": [{"x": -3, "y": 4}]})), "positive");
    assert_eq!(call("nothing", json!({})), "no");
    assert_eq!(call("system", json!({})), "native");
    assert_eq!(call("greet", json!({})), "invalid: arguments of greet: missing field `name` at line 1 column 2");
}

#[test]
fn handlers_are_functions() {
    assert_eq!(tools::greet(&hako::Call::default(), "Aki".into(), None).unwrap(), ": Hello, Aki!");
}

#[test]
fn reads_resources() {
    for uri in ["test://one", "test://two"] {
        let response = request(tools::handlers, json!({"method": "resources/read", "uri": uri}));
        assert_eq!(response["contents"][0], json!({"uri": uri, "mimeType": "text/plain", "text": "a text"}));
    }
    let (uri, template) = ("test://a/7", "test://{kind}/{id}{?q*}");
    let response = request(
        tools::handlers,
        json!({"method": "resources/read", "uri": uri, "template": template, "variables": {"kind": "a", "id": "7"}}),
    );
    assert_eq!(response["contents"][0]["text"], "7 None");
}

#[test]
fn gets_prompts_and_completes() {
    for (arguments, want) in [(json!({"to": "Aki"}), "Aki: plain"), (json!({"to": "Aki", "tone": "warm"}), "Aki: warm")] {
        let response = request(tools::handlers, json!({"method": "prompts/get", "name": "letter", "arguments": arguments}));
        assert_eq!(response["messages"][0]["content"]["text"], want);
    }
    for (argument, want) in [("to", "x1 Some(\"cold\")"), ("tone", "cold")] {
        let argument = json!({"name": argument, "value": "x", "resolved": {"tone": "cold"}});
        let response = request(
            tools::handlers,
            json!({"method": "completion/complete", "ref": {"type": "ref/prompt", "name": "letter"}, "argument": argument}),
        );
        assert_eq!(response["completion"]["values"], json!([want]));
    }
}

#[test]
fn names_the_handlers() {
    let response = request(tools::handlers, json!({"method": "hako/handlers"}));
    assert_eq!(
        response["handlers"],
        json!({
            "tools": ["distance", "greet", "move", "nothing", "other_name", "sum", "system"],
            "resources": ["test://one", "test://two"],
            "resourceTemplates": ["test://{kind}/{id}{?q*}"],
            "prompts": ["letter"],
        })
    );
}

#[test]
fn registers_by_a_function() {
    // In a module of its own because a plugin has the attribute once: here the exports are left out.
    mod other {
        #[hako::plugin]
        pub fn handlers(plugin: &mut super::Plugin) {
            plugin.tool("twice", |_, number: u32| Ok((2 * number).to_string()));
        }
    }
    assert_eq!(text(call_tool(other::handlers, "twice", json!(4), "en")), "8");
}
