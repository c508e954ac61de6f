//! HTTP requests, permission `http`. The host checks them against the plugin's grants.

use crate::{host, Error, Result};
use serde::Deserialize;
use serde_json::{json, Value};
use std::collections::HashMap;

/// A request. An empty method means GET.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A response with any status. Header names are in canonical form (`Content-Type`).
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: HashMap<String, Vec<String>>,
    /// The final URL, after redirects.
    pub url: String,
    /// Public facts about the operator's credential that the host applied.
    pub credential: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Response {
    /// The first value of a header, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|values| values.first()).map_or("", String::as_str)
    }

    /// The body as text, in which U+FFFD stands for what is not UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

impl Request {
    pub fn get(url: impl Into<String>) -> Self {
        Request { url: url.into(), ..Default::default() }
    }

    pub fn post(url: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Request { method: "POST".into(), url: url.into(), body: body.into(), ..Default::default() }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends the request and reads the response. A status of 4xx or 5xx is no error.
    pub fn send(&self) -> Result<Response> {
        let head = self.head();
        receive(unsafe { imports::request(head.as_ptr(), head.len(), self.body.as_ptr(), self.body.len()) })
    }

    /// Sends the request without waiting for the response. A call has at most 8 under way.
    pub fn start(&self) -> Result<Pending> {
        let head = self.head();
        match unsafe { imports::start(head.as_ptr(), head.len(), self.body.as_ptr(), self.body.len()) } {
            handle if handle >= 0 => Ok(Pending(handle)),
            failed => Err(host::take_error(failed)),
        }
    }

    fn head(&self) -> Vec<u8> {
        let mut headers: HashMap<&str, Vec<&str>> = HashMap::new();
        for (name, value) in &self.headers {
            headers.entry(name).or_default().push(value);
        }
        let method = if self.method.is_empty() { "GET" } else { &self.method };
        json!({"method": method, "url": self.url, "headers": headers}).to_string().into_bytes()
    }
}

/// A request under way. Dropping it cancels the request.
#[must_use]
pub struct Pending(i32);

impl Pending {
    pub fn wait(self) -> Result<Response> {
        let handle = self.0;
        std::mem::forget(self);
        receive(unsafe { imports::wait(handle) })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        unsafe { imports::close(self.0) };
    }
}

#[derive(Deserialize)]
struct Head {
    error: Option<Error>,
    #[serde(default)]
    handle: i32,
    #[serde(default)]
    status: u16,
    #[serde(default)]
    headers: HashMap<String, Vec<String>>,
    #[serde(default)]
    url: String,
    #[serde(default)]
    credential: HashMap<String, Value>,
}

fn receive(length: usize) -> Result<Response> {
    let head: Head = host::take_json(length)?;
    if let Some(error) = head.error {
        return Err(error);
    }
    let mut body = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    let result = loop {
        match unsafe { imports::read(head.handle, chunk.as_mut_ptr(), chunk.len()) } {
            0 => break Ok(()),
            n if n > 0 => body.extend_from_slice(&chunk[..n as usize]),
            failed => break Err(host::take_error(failed)),
        }
    };
    unsafe { imports::close(head.handle) };
    result?;
    let credential = head.credential.into_iter().filter_map(|(key, value)| Some((key, value.as_str()?.to_string())));
    Ok(Response { status: head.status, headers: head.headers, url: head.url, credential: credential.collect(), body })
}

#[cfg(target_arch = "wasm32")]
mod imports {
    #[link(wasm_import_module = "hako:http/1")]
    extern "C" {
        pub fn request(head: *const u8, head_length: usize, body: *const u8, body_length: usize) -> usize;
        pub fn start(head: *const u8, head_length: usize, body: *const u8, body_length: usize) -> i32;
        pub fn wait(handle: i32) -> usize;
        pub fn read(handle: i32, p: *mut u8, capacity: usize) -> i32;
        pub fn close(handle: i32);
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod imports {
    const NO_HOST: &str = "HTTP needs the host: put what is around it into a function of its own, and test that";

    pub unsafe fn request(_: *const u8, _: usize, _: *const u8, _: usize) -> usize {
        unimplemented!("{NO_HOST}")
    }
    pub unsafe fn start(_: *const u8, _: usize, _: *const u8, _: usize) -> i32 {
        unimplemented!("{NO_HOST}")
    }
    pub unsafe fn wait(_: i32) -> usize {
        unimplemented!("{NO_HOST}")
    }
    pub unsafe fn read(_: i32, _: *mut u8, _: usize) -> i32 {
        0
    }
    pub unsafe fn close(_: i32) {}
}
