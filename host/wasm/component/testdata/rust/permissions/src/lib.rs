// Calls the functions of hako's own WIT packages.

wit_bindgen::generate!({
    path: ["../../../../../pdk/wit/sql.wit", "../../../../../pdk/wit/exec.wit", "../../../../../pdk/wit/tool.wit"],
    inline: "
    package hako:permissions;

    world permissions {
      import hako:sql/database@1.0.0;
      import hako:exec/commands@1.0.0;
      import hako:tool/log@1.0.0;
      import hako:tool/progress@1.0.0;

      /// Keeps a note and returns how many there are.
      export note: func(text: string) -> result<s64, string>;
      /// Runs a command line and returns what it writes.
      export run: func(line: string) -> result<string, string>;
    }
",
    generate_all
});

use hako::exec::commands;
use hako::sql::database::{self, Value};
use hako::tool::{log, progress};

struct Component;

impl Guest for Component {
    fn note(text: String) -> Result<i64, String> {
        let note = || -> Result<i64, database::Error> {
            database::exec("CREATE TABLE IF NOT EXISTS notes (text TEXT NOT NULL)", &[])?;
            database::begin(true)?;
            database::exec("INSERT INTO notes VALUES (?)", &[Value::Text(text)])?;
            database::commit()?;
            match database::query("SELECT count(*) FROM notes", &[])?.rows[0][0] {
                Value::Integer(n) => Ok(n),
                _ => unreachable!(),
            }
        };
        log::write(log::Level::Info, "keeps a note");
        progress::report(1.0, Some(1.0), "kept");
        note().map_err(|e| format!("{}: {}", e.code, e.message))
    }

    fn run(line: String) -> Result<String, String> {
        let options = commands::Options { cwd: None, timeout_ms: Some(60_000) };
        let end = commands::run(&commands::Command::Line(line), &options);
        end.map(|f| String::from_utf8_lossy(&f.stdout).into_owned()).map_err(|e| format!("{}: {}", e.code, e.message))
    }
}

export!(Component);
