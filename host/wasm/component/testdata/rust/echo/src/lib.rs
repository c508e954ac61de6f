wit_bindgen::generate!({ inline: "
    package hako:echo;

    world echo {
      /// Returns the text.
      export echo: func(text: string) -> string;
      /// Returns the bytes.
      export echo-bytes: func(data: list<u8>) -> list<u8>;
      /// Fails with the text.
      export fail: func(text: string) -> result<string, string>;
    }
" });

struct Component;

impl Guest for Component {
    fn echo(text: String) -> String {
        text
    }

    fn echo_bytes(data: Vec<u8>) -> Vec<u8> {
        data
    }

    fn fail(text: String) -> Result<String, String> {
        Err(text)
    }
}

export!(Component);
