//! The attributes of the crate `hako`, which exports them.

mod expand;

use proc_macro::TokenStream;

/// Makes the handlers of a module those of the plugin. They are functions with [`macro@tool`], [`macro@resource`],
/// [`macro@template`], [`macro@prompt`] or [`macro@completer`]. A function may have several of these attributes.
///
/// ```ignore
/// #[hako::plugin]
/// mod tools {
///     use hako::{Call, Result};
///
///     #[tool]
///     fn greet(call: &Call, name: String, times: Option<u32>) -> Result<String> {
///         Ok(format!("Hello, {name}!").repeat(times.unwrap_or(1) as usize))
///     }
/// }
/// ```
///
/// A handler returns a [`hako::Result`](../hako/type.Result.html). It takes, in this order and each only if it needs it:
///
/// - `&Call`, which has the configuration and the caller's language
/// - `&str`: the URI of a resource, or the text that a completer completes
/// - values that serde decodes, by the names of the parameters. `Option` may be absent; `#[serde(...)]` works as in a struct. With
///   `#[arguments]` one parameter takes all values, in a type of yours.
///
/// Handlers remain functions that tests can call. The module also gets `handlers`, which registers them, for `hako::testing`.
///
/// On a function, `fn handlers(plugin: &mut Plugin)`, the attribute makes those handlers the plugin's that the function
/// registers. A plugin has this attribute once.
#[proc_macro_attribute]
pub fn plugin(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::plugin(arguments.into(), item.into()).into()
}

/// Defines an attribute that [`macro@plugin`] removes from functions of its module. Elsewhere it is an error.
macro_rules! attribute {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[proc_macro_attribute]
        pub fn $name(_: TokenStream, item: TokenStream) -> TokenStream {
            expand::misplaced(stringify!($name), item.into()).into()
        }
    };
}

attribute! {
    /// The handler of a tool: `#[tool]` if the function has its name, else `#[tool("name")]`. The parameters are properties of
    /// the tool's arguments. The result is a text, `Json` or an `Output`.
    tool
}
attribute! {
    /// The handler of a resource, `#[resource("notes://all")]`. It returns `Vec<Contents>`.
    resource
}
attribute! {
    /// The handler of a resource template, `#[template("notes://{id}")]`. The parameters are variables of the template, `String`
    /// or what serde makes of a text. It returns `Vec<Contents>`.
    template
}
attribute! {
    /// The handler of a prompt: `#[prompt]` if the function has its name, else `#[prompt("name")]`. The parameters are the
    /// prompt's arguments, `String` or what serde makes of a text. It returns a `Prompt`.
    prompt
}
attribute! {
    /// Proposes values for an argument of a prompt, or for a variable of a template:
    /// `#[completer(of = "greet", argument = "name")]`. The parameter `&str` is the text that the values start with, others are
    /// the arguments that were given before. It returns `Vec<String>`, the best first.
    completer
}
