//! The plugin that hako plugin conformance tests the Rust PDK by.

#[hako::plugin]
mod conformance {
    use hako::serde_json::{json, Value};
    use hako::{http, sql, Call, Contents, Json, Level, Message, Output, Prompt, Result};
    use std::collections::hash_map::RandomState;
    use std::hash::{BuildHasher, Hasher};
    use std::sync::atomic::{AtomicU32, Ordering};

    static CALLS: AtomicU32 = AtomicU32::new(0);

    fn all() -> Vec<u8> {
        (0..=255).collect()
    }

    #[tool]
    fn echo(text: String) -> Result<String> {
        Ok(text)
    }

    #[tool]
    fn add(a: i64, b: i64) -> Result<Json<Value>> {
        Ok(Json(json!({"sum": a + b})))
    }

    #[tool]
    fn blocks() -> Result<Output> {
        let contents = Contents::text("conformance://text", "text/plain", "embedded");
        let all = all();
        let output = Output::new().text("text").image("image/png", &all).audio("audio/wav", &all);
        Ok(output.link("conformance://text", "text", "text/plain").resource(contents))
    }

    #[tool]
    fn bytes(bytes: Vec<u8>) -> Result<String> {
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    #[tool]
    fn fail(message: String) -> Result<String> {
        Err(message.into())
    }

    #[tool("panic")]
    fn panics(message: String) -> Result<String> {
        panic!("{message}")
    }

    #[tool]
    fn progress(steps: u32) -> Result<&'static str> {
        for i in 1..=steps {
            hako::progress(i.into(), steps.into(), &format!("step {i}"));
        }
        Ok("done")
    }

    #[tool]
    fn log(message: String) -> Result<&'static str> {
        hako::log(Level::Info, &message);
        Ok("logged")
    }

    #[tool]
    fn config(call: &Call) -> Result<String> {
        let config: Value = call.config()?;
        Ok(config["greeting"].as_str().unwrap_or_default().to_string())
    }

    #[tool]
    fn locale(call: &Call) -> Result<String> {
        Ok(call.locale().to_string())
    }

    #[tool]
    fn count() -> Result<String> {
        Ok((CALLS.fetch_add(1, Ordering::Relaxed) + 1).to_string())
    }

    #[tool]
    fn random() -> Result<String> {
        Ok(RandomState::new().build_hasher().finish().to_string())
    }

    #[tool]
    fn update(uri: String) -> Result<&'static str> {
        hako::resource_updated(&uri);
        Ok("updated")
    }

    #[tool("http")]
    fn send(method: String, url: String, #[serde(default)] body: String) -> Result<Json<Value>> {
        let response = http::Request { method, url, body: body.into(), ..Default::default() }.send()?;
        Ok(Json(json!({"status": response.status, "type": response.header("Content-Type"), "body": response.text()})))
    }

    #[tool]
    fn parallel(urls: Vec<String>) -> Result<String> {
        let started = urls.iter().map(|url| http::Request::get(url).start()).collect::<Result<Vec<_>>>()?;
        let bodies = started.into_iter().map(|pending| Ok(pending.wait()?.text())).collect::<Result<Vec<_>>>()?;
        Ok(bodies.join("|"))
    }

    #[tool]
    fn exec(sql: String) -> Result<String> {
        Ok(sql::exec(&sql, &[])?.changes.to_string())
    }

    #[tool]
    fn query(sql: String, text: String) -> Result<String> {
        let rows = sql::query(&sql, &[text.into()])?.rows;
        Ok(match &rows[0][0] {
            sql::Value::Text(text) => text.clone(),
            value => value.to_json().to_string(),
        })
    }

    #[tool]
    fn copy(sql: String, into: String) -> Result<String> {
        let rows = sql::query(&sql, &[])?.rows;
        let copied = sql::query(&into, &rows[rows.len() - 1])?.rows;
        match &copied[0][0] {
            sql::Value::Text(text) => Ok(text.clone()),
            value => Err(format!("the value is {value:?}").into()),
        }
    }

    #[tool]
    fn transaction(sql: String, keep: bool) -> Result<String> {
        let mut changes = 0;
        let ended = sql::transaction(true, || {
            changes = sql::exec(&sql, &[])?.changes;
            if keep { Ok(()) } else { Err("undone".into()) }
        });
        match ended {
            Err(error) if keep || changes == 0 => Err(error),
            _ => Ok(changes.to_string()),
        }
    }

    #[resource("conformance://text")]
    fn a_text(uri: &str) -> Result<Vec<Contents>> {
        Ok(vec![Contents::text(uri, "text/plain", "a text")])
    }

    #[resource("conformance://bytes")]
    fn all_bytes(uri: &str) -> Result<Vec<Contents>> {
        Ok(vec![Contents::bytes(uri, "application/octet-stream", &all())])
    }

    #[template("conformance://item/{id}")]
    fn item(uri: &str, id: String) -> Result<Vec<Contents>> {
        Ok(vec![Contents::text(uri, "text/plain", &format!("item {id}"))])
    }

    #[prompt]
    fn greet(name: String) -> Result<Prompt> {
        let messages = vec![Message::user(&format!("Greet {name}."))];
        Ok(Prompt { description: String::new(), messages })
    }

    #[completer(of = "greet", argument = "name")]
    fn names(value: &str) -> Result<Vec<String>> {
        Ok(vec![format!("{value}1"), format!("{value}2")])
    }
}
