//! The plugin that hako plugin conformance tests the Rust PDK by.

use hako::serde::Deserialize;
use hako::serde_json::{json, Value};
use hako::{http, sql, Call, Contents, Json, Level, Message, Output, Plugin, Prompt, Result};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};

hako::plugin!(handlers);

#[derive(Default, Deserialize)]
#[serde(crate = "hako::serde", default)]
struct Args {
    a: i64,
    b: i64,
    steps: u32,
    bytes: Vec<u8>,
    urls: Vec<String>,
    text: String,
    message: String,
    uri: String,
    method: String,
    url: String,
    body: String,
    sql: String,
}

static CALLS: AtomicU32 = AtomicU32::new(0);

fn handlers(p: &mut Plugin) {
    p.tool("echo", |_, args: Args| Ok(args.text));
    p.tool("add", |_, args: Args| Ok(Json(json!({"sum": args.a + args.b}))));
    p.tool("blocks", |_, _: Args| {
        let contents = Contents::text("conformance://text", "text/plain", "embedded");
        let all = all();
        let output = Output::new().text("text").image("image/png", &all).audio("audio/wav", &all);
        Ok(output.link("conformance://text", "text", "text/plain").resource(contents))
    });
    p.tool("bytes", |_, args: Args| Ok(String::from_utf8_lossy(&args.bytes).into_owned()));
    p.tool("fail", |_, args: Args| -> Result<String> { Err(args.message.into()) });
    p.tool("panic", |_, args: Args| -> Result<String> { panic!("{}", args.message) });
    p.tool("progress", |_, args: Args| {
        for i in 1..=args.steps {
            hako::progress(i.into(), args.steps.into(), &format!("step {i}"));
        }
        Ok("done")
    });
    p.tool("log", |_, args: Args| {
        hako::log(Level::Info, &args.message);
        Ok("logged")
    });
    p.tool("config", |call, _: Args| {
        let config: Value = call.config()?;
        Ok(config["greeting"].as_str().unwrap_or_default().to_string())
    });
    p.tool("locale", |call, _: Args| Ok(call.locale().to_string()));
    p.tool("count", |_, _: Args| Ok((CALLS.fetch_add(1, Ordering::Relaxed) + 1).to_string()));
    p.tool("random", |_, _: Args| Ok(RandomState::new().build_hasher().finish().to_string()));
    p.tool("update", |_, args: Args| {
        hako::resource_updated(&args.uri);
        Ok("updated")
    });
    p.tool("http", |_, args: Args| {
        let request = http::Request { method: args.method, url: args.url, body: args.body.into(), ..Default::default() };
        let response = request.send()?;
        Ok(Json(json!({"status": response.status, "type": response.header("Content-Type"), "body": response.text()})))
    });
    p.tool("parallel", parallel);
    p.tool("exec", |_, args: Args| Ok(sql::exec(&args.sql, &[])?.changes.to_string()));
    p.tool("query", |_, args: Args| {
        let rows = sql::query(&args.sql, &[args.text.into()])?.rows;
        Ok(match &rows[0][0] {
            sql::Value::Text(text) => text.clone(),
            value => value.to_json().to_string(),
        })
    });
    p.resource("conformance://text", |_, uri| Ok(vec![Contents::text(uri, "text/plain", "a text")]));
    p.resource("conformance://bytes", |_, uri| Ok(vec![Contents::bytes(uri, "application/octet-stream", &all())]));
    p.template("conformance://item/{id}", |_, uri, variables| {
        Ok(vec![Contents::text(uri, "text/plain", &format!("item {}", variables["id"]))])
    });
    p.prompt("greet", |_, arguments| {
        let messages = vec![Message::user(&format!("Greet {}.", arguments["name"]))];
        Ok(Prompt { description: String::new(), messages })
    });
    p.completer("greet", "name", |_, value, _| Ok(vec![format!("{value}1"), format!("{value}2")]));
}

fn all() -> Vec<u8> {
    (0..=255).collect()
}

fn parallel(_: &Call, args: Args) -> Result<String> {
    let started = args.urls.iter().map(|url| http::Request::get(url).start()).collect::<Result<Vec<_>>>()?;
    let bodies = started.into_iter().map(|pending| Ok(pending.wait()?.text())).collect::<Result<Vec<_>>>()?;
    Ok(bodies.join("|"))
}
