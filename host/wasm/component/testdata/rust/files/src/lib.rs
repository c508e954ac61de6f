wit_bindgen::generate!({ inline: "
    package hako:files;

    world files {
      /// Returns the content of a file.
      export read: func(path: string) -> result<string, string>;
      /// Writes a file.
      export write: func(path: string, text: string) -> result<_, string>;
      /// Lists the names in a directory.
      export names: func(path: string) -> result<list<string>, string>;
    }
" });

struct Component;

impl Guest for Component {
    fn read(path: String) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|e| e.to_string())
    }

    fn write(path: String, text: String) -> Result<(), String> {
        std::fs::write(path, text).map_err(|e| e.to_string())
    }

    fn names(path: String) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path).map_err(|e| e.to_string())? {
            let entry = entry.map_err(|e| e.to_string())?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
}

export!(Component);
