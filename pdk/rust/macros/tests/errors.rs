//! Holds where errors of the attributes point, and what they say.

#[path = "../src/expand.rs"]
mod expand;

use proc_macro2::{TokenStream, TokenTree};

/// The texts of `compile_error!` in an expansion, each with the source that it points at.
fn errors(expansion: TokenStream) -> Vec<(String, String)> {
    let tokens: Vec<TokenTree> = expansion.into_iter().collect();
    let mut found = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        let names = tokens[..i].iter().rev().take(2).map(|t| t.to_string()).collect::<Vec<_>>();
        if names != ["!", "compile_error"] {
            found.extend(errors(group.stream()));
            continue;
        }
        let text: syn::LitStr = syn::parse2(group.stream()).unwrap();
        // The error is shown from the first token of `::core::compile_error! { ... }`, which are seven and a group, to its last.
        let shown = tokens[i - 7].span().join(group.span()).unwrap();
        found.push((shown.source_text().unwrap_or_default(), text.value()));
    }
    found
}

fn of_module(handlers: &str) -> Vec<(String, String)> {
    let module = format!("mod tools {{ {handlers} }}").parse().unwrap();
    errors(expand::plugin(TokenStream::new(), module))
}

#[test]
fn point_at_what_is_wrong() {
    let cases = [
        // Attributes.
        ("#[tool(nam = \"x\")] fn f() -> R {}", "tool(nam = \"x\")", "write #[tool], or #[tool(\"other_name\")]"),
        ("#[tool(greet)] fn f() -> R {}", "tool(greet)", "write #[tool], or"),
        ("#[tool = \"x\"] fn f() -> R {}", "tool = \"x\"", "write #[tool], or"),
        ("#[tool()] fn f() -> R {}", "tool()", "write #[tool], or"),
        ("#[tool(\"\")] fn f() -> R {}", "tool(\"\")", "a name in `#[tool]` is empty"),
        ("#[resource] fn f() -> R {}", "resource", "write #[resource(\"notes://all\")], with the URI"),
        ("#[template] fn f() -> R {}", "template", "write #[template(\"notes://{id}\")], with the URI template"),
        ("#[completer] fn f() -> R {}", "completer", "write #[completer(of = \"greet\", argument = \"name\")]"),
        ("#[completer(of = \"a\")] fn f() -> R {}", "completer(of = \"a\")", "write #[completer("),
        ("#[completer(off = \"a\", argument = \"b\")] fn f() -> R {}", "completer(off = \"a\", argument = \"b\")", "write #[completer("),
        ("#[completer(of = \"a\", of = \"b\")] fn f() -> R {}", "completer(of = \"a\", of = \"b\")", "write #[completer("),
        // Names.
        ("#[tool] fn f() -> R {} #[tool(\"f\")] fn g() -> R {}", "\"f\"", "there are two handlers for the tool `f`"),
        ("#[tool(\"g\")] fn f() -> R {} #[tool] fn g() -> R {}", "g", "there are two handlers for the tool `g`"),
        (
            "#[completer(of = \"a\", argument = \"b\")] #[completer(of = \"a\", argument = \"b\")] fn f() -> R {}",
            "\"a\"",
            "there are two handlers for the completion of `b` of `a`",
        ),
        ("#[tool] fn handlers() -> R {}", "handlers", "makes the function `handlers` of this module: choose another name"),
        // Functions.
        ("#[tool] fn f(&self) -> R {}", "&self", "a handler cannot have `self`"),
        ("#[tool] fn f<T>(a: T) -> R {}", "T", "a handler cannot be generic: the host calls it by name alone"),
        ("#[tool] fn f(a: impl Into<String>) -> R {}", "impl Into<String>", "a handler cannot be generic: name the type"),
        ("#[tool] async fn f() -> R {}", "async", "a handler cannot be async"),
        ("#[tool] fn f() {}", "f", "a handler returns a `hako::Result`, such as `Result<String>`"),
        // Parameters.
        ("#[tool] fn f((a, b): (u8, u8)) -> R {}", "(a, b)", "a parameter has the name of the argument"),
        ("#[tool] fn f(_: u8) -> R {}", "_", "a parameter has the name of the argument"),
        ("#[tool] fn f(a: u8, call: &Call) -> R {}", "&Call", "`&Call` must be the first parameter"),
        ("#[tool] fn f(call: &mut Call) -> R {}", "&mut Call", "a handler gets nothing to change"),
        ("#[tool] fn f(a: &str) -> R {}", "a: &str", "take a `String` in place of `&str`"),
        ("#[tool] fn f(a: &[u8]) -> R {}", "&[u8]", "take it without `&`"),
        ("#[tool] fn f(#[arguments] a: A, b: u8) -> R {}", "b: u8", "the parameter with `#[arguments]` takes all"),
        ("#[tool] fn f(b: u8, #[arguments] a: A) -> R {}", "#[arguments]", "a parameter with `#[arguments]` takes all"),
        ("#[tool] fn f(#[arguments(x)] a: A) -> R {}", "#[arguments(x)]", "write `#[arguments]`, without more"),
        ("#[resource(\"a:b\")] fn f(id: String) -> R {}", "id: String", "a resource has no arguments"),
        ("#[template(\"a:{id}\")] fn f(idd: String) -> R {}", "idd", "the template `a:{id}` has no variable `idd`"),
        ("#[template(\"a:{id}\")] fn f(id: String, uri: &str) -> R {}", "&str", "comes before them"),
    ];
    let mut failed = Vec::new();
    for (handlers, place, text) in cases {
        let errors = of_module(handlers);
        if errors.len() != 1 || errors[0].0 != place || !errors[0].1.contains(text) {
            failed.push(format!("{handlers}\n    {errors:?}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn are_reported_together() {
    let errors = of_module("#[tool] async fn f() -> R {} #[tool] fn g(&self) -> R {}");
    assert_eq!(errors.iter().map(|e| e.0.as_str()).collect::<Vec<_>>(), ["async", "&self"]);
}

#[test]
fn name_the_items_that_are_allowed() {
    let cases = [
        ("", "struct S;", "struct S;", "is for a module with handlers, or for a function"),
        ("", "mod tools;", "mod tools;", "the handlers must be here"),
        ("", "async fn f(plugin: &mut Plugin) {}", "async", "a function that registers handlers cannot be async"),
        ("x", "mod tools {}", "x", "`#[hako::plugin]` takes no arguments"),
    ];
    for (arguments, item, place, text) in cases {
        let errors = errors(expand::plugin(arguments.parse().unwrap(), item.parse().unwrap()));
        assert!(errors.len() == 1 && errors[0].0 == place && errors[0].1.contains(text), "{item}\n{errors:?}");
    }
    let errors = errors(expand::misplaced("tool", TokenStream::new()));
    assert!(errors[0].1.contains("directly in a module with `#[hako::plugin]`"), "{errors:?}");
}

#[test]
fn leave_out_what_cfg_decides() {
    let handlers = "#[cfg(a)] #[tool] fn f() -> R {} #[cfg(not(a))] #[tool] fn f() -> R {}";
    assert_eq!(of_module(handlers), []);
}
