use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, OutgoingRequest, Scheme};

wit_bindgen::generate!({ inline: "
    package hako:fetch;

    world fetch {
      /// Returns the status and the body that a URL answers with.
      export get: func(url: string) -> result<tuple<u16, string>, string>;
      /// Returns an environment variable.
      export environment: func(name: string) -> option<string>;
    }
" });

struct Component;

impl Guest for Component {
    fn get(url: String) -> Result<(u16, String), String> {
        let (scheme, rest) = match url.split_once("://") {
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(("https", rest)) => (Scheme::Https, rest),
            _ => return Err(format!("not a URL: {url}")),
        };
        let slash = rest.find('/').unwrap_or(rest.len());
        let request = OutgoingRequest::new(Fields::new());
        request.set_scheme(Some(&scheme)).map_err(|_| "scheme")?;
        request.set_authority(Some(&rest[..slash])).map_err(|_| "authority")?;
        request.set_path_with_query(Some(&rest[slash..])).map_err(|_| "path")?;
        let pending = handle(request, None).map_err(|e| e.to_string())?;
        pending.subscribe().block();
        let response = pending.get().ok_or("no answer")?.map_err(|_| "taken twice")?.map_err(|e| e.to_string())?;
        let body = response.consume().map_err(|_| "no body")?;
        let stream = body.stream().map_err(|_| "no stream")?;
        let mut text = Vec::new();
        while let Ok(chunk) = stream.blocking_read(64 << 10) {
            text.extend(chunk);
        }
        Ok((response.status(), String::from_utf8_lossy(&text).into_owned()))
    }

    fn environment(name: String) -> Option<String> {
        std::env::var(name).ok()
    }
}

export!(Component);
