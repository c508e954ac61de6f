//! The plugin's database, permission `sql`.

use crate::{host, Error, Result};
use serde::Deserialize;
use serde_json::{json, value::RawValue, Number, Value as Json};

/// A value of SQLite.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Integer(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Real(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(value)
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Value::Blob(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// What a query found.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

/// What a statement changed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    pub changes: i64,
    pub last_insert_id: i64,
}

/// Runs a statement and returns its rows. `args` has a value for each parameter: `&["Aki".into(), 7.into()]`.
pub fn query(sql: &str, args: &[Value]) -> Result<Rows> {
    #[derive(Deserialize)]
    struct Answer {
        columns: Vec<String>,
        #[serde(default)]
        rows: Vec<Vec<Box<RawValue>>>,
    }
    let answer: Answer = run(sql, args, |h, n, b, m| unsafe { imports::query(h, n, b, m) })?;
    let mut blobs = Vec::new();
    if answer.rows.iter().flatten().any(|value| value.get().starts_with('{')) {
        blobs = host::take(unsafe { imports::blobs() });
    }
    let mut blobs = blobs.into_iter();
    let mut values = answer.rows.iter().flatten().map(|value| decode(value.get(), &mut blobs));
    let rows = answer.rows.iter().map(|row| values.by_ref().take(row.len()).collect()).collect::<Result<_>>()?;
    Ok(Rows { columns: answer.columns, rows })
}

/// Runs a statement and returns what it changed.
pub fn exec(sql: &str, args: &[Value]) -> Result<Changes> {
    run(sql, args, |h, n, b, m| unsafe { imports::exec(h, n, b, m) })
}

/// Runs `work` in a transaction, which is undone if `work` fails. Without `write` it only reads.
pub fn transaction<T>(write: bool, work: impl FnOnce() -> Result<T>) -> Result<T> {
    control(unsafe { imports::begin(write.into()) })?;
    match work() {
        Ok(value) => control(unsafe { imports::commit() }).map(|()| value),
        Err(error) => {
            let _ = control(unsafe { imports::rollback() }); // the error of the work says more
            Err(error)
        }
    }
}

/// Runs a statement with a function of the host, which takes the statement and its blobs.
fn run<T: serde::de::DeserializeOwned>(
    sql: &str,
    args: &[Value],
    function: impl Fn(*const u8, usize, *const u8, usize) -> usize,
) -> Result<T> {
    let mut blobs = Vec::new();
    let args = args.iter().map(|value| encode(value, &mut blobs)).collect::<Result<Vec<_>>>()?;
    let head = format!(r#"{{"sql":{},"args":[{}]}}"#, json!(sql), args.join(","));
    let answer = host::take(function(head.as_ptr(), head.len(), blobs.as_ptr(), blobs.len()));
    match serde_json::from_slice::<Failure>(&answer)?.error {
        Some(error) => Err(error),
        None => Ok(serde_json::from_slice(&answer)?),
    }
}

#[derive(Deserialize)]
struct Failure {
    error: Option<Error>,
}

fn control(length: usize) -> Result<()> {
    match length {
        0 => Ok(()),
        _ => Err(host::take_json::<Failure>(length)?.error.unwrap_or_else(|| "the transaction failed".into())),
    }
}

/// The JSON of a value: a REAL has a fraction or an exponent.
fn encode(value: &Value, blobs: &mut Vec<u8>) -> Result<String> {
    Ok(match value {
        Value::Null => "null".into(),
        Value::Integer(n) => n.to_string(),
        Value::Real(f) if f.is_nan() => return Err(Error::new(crate::code::INVALID, "SQL does not know NaN")),
        Value::Real(f) if f.is_infinite() => if *f > 0.0 { "9e999" } else { "-9e999" }.into(),
        Value::Real(f) => format!("{f:?}"),
        Value::Text(text) => json!(text).to_string(),
        Value::Blob(data) => {
            blobs.extend_from_slice(data);
            json!({"blob": data.len()}).to_string()
        }
    })
}

fn decode(json: &str, blobs: &mut impl Iterator<Item = u8>) -> Result<Value> {
    #[derive(Deserialize)]
    struct Blob {
        blob: usize,
    }
    Ok(match json.as_bytes()[0] {
        b'n' => Value::Null,
        b'"' => Value::Text(serde_json::from_str(json)?),
        b'{' => Value::Blob(blobs.take(serde_json::from_str::<Blob>(json)?.blob).collect()),
        _ if json.contains(['.', 'e', 'E']) => Value::Real(json.parse()?),
        _ => Value::Integer(json.parse()?),
    })
}

impl Value {
    /// The value as JSON; a blob becomes an array of its bytes.
    pub fn to_json(&self) -> Json {
        match self {
            Value::Null => Json::Null,
            Value::Integer(n) => (*n).into(),
            Value::Real(f) => Number::from_f64(*f).map_or(Json::Null, Json::Number),
            Value::Text(text) => text.as_str().into(),
            Value::Blob(data) => data.as_slice().into(),
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod imports {
    #[link(wasm_import_module = "hako:sql/1")]
    extern "C" {
        pub fn query(head: *const u8, head_length: usize, blobs: *const u8, blobs_length: usize) -> usize;
        pub fn exec(head: *const u8, head_length: usize, blobs: *const u8, blobs_length: usize) -> usize;
        pub fn blobs() -> usize;
        pub fn begin(write: u32) -> usize;
        pub fn commit() -> usize;
        pub fn rollback() -> usize;
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod imports {
    const NO_HOST: &str = "SQL needs the host: put what is around it into a function of its own, and test that";

    pub unsafe fn query(_: *const u8, _: usize, _: *const u8, _: usize) -> usize {
        unimplemented!("{NO_HOST}")
    }
    pub unsafe fn exec(_: *const u8, _: usize, _: *const u8, _: usize) -> usize {
        unimplemented!("{NO_HOST}")
    }
    pub unsafe fn blobs() -> usize {
        0
    }
    pub unsafe fn begin(_: u32) -> usize {
        unimplemented!("{NO_HOST}")
    }
    pub unsafe fn commit() -> usize {
        0
    }
    pub unsafe fn rollback() -> usize {
        0
    }
}
