//! The functions of `hako:core/1`. Natively, where tests run, there is no host: what it would record is dropped.

#[cfg(target_arch = "wasm32")]
mod imports {
    #[link(wasm_import_module = "hako:core/1")]
    extern "C" {
        pub fn take(p: *mut u8);
        pub fn respond(p: *const u8, length: usize);
        pub fn blob(p: *const u8, length: usize) -> u32;
        pub fn log(level: i32, p: *const u8, length: usize);
        pub fn progress(progress: f64, total: f64, p: *const u8, length: usize);
        pub fn updated(p: *const u8, length: usize);
        pub fn canceled() -> i32;
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod imports {
    pub unsafe fn take(_: *mut u8) {}
    pub unsafe fn respond(_: *const u8, _: usize) {}
    pub unsafe fn blob(_: *const u8, _: usize) -> u32 {
        0
    }
    pub unsafe fn log(level: i32, p: *const u8, length: usize) {
        eprintln!("{level} {}", String::from_utf8_lossy(std::slice::from_raw_parts(p, length)));
    }
    pub unsafe fn progress(_: f64, _: f64, _: *const u8, _: usize) {}
    pub unsafe fn updated(_: *const u8, _: usize) {}
    pub unsafe fn canceled() -> i32 {
        0
    }
}

/// Takes the pending bytes, of which the host has announced `length`.
pub fn take(length: usize) -> Vec<u8> {
    let mut data = vec![0; length];
    unsafe { imports::take(data.as_mut_ptr()) };
    data
}

/// Takes and decodes pending JSON.
pub fn take_json<T: serde::de::DeserializeOwned>(length: usize) -> crate::Result<T> {
    Ok(serde_json::from_slice(&take(length))?)
}

/// Takes the error that a negative result announces.
pub fn take_error(result: i32) -> crate::Error {
    take_json(result.unsigned_abs() as usize).unwrap_or_else(|error| error)
}

pub fn respond(response: &[u8]) {
    unsafe { imports::respond(response.as_ptr(), response.len()) };
}

pub fn blob(data: &[u8]) -> u32 {
    unsafe { imports::blob(data.as_ptr(), data.len()) }
}

pub fn log(level: i32, text: &str) {
    unsafe { imports::log(level, text.as_ptr(), text.len()) };
}

pub fn progress(progress: f64, total: f64, message: &str) {
    unsafe { imports::progress(progress, total, message.as_ptr(), message.len()) };
}

pub fn updated(uri: &str) {
    unsafe { imports::updated(uri.as_ptr(), uri.len()) };
}

pub fn canceled() -> bool {
    unsafe { imports::canceled() != 0 }
}
