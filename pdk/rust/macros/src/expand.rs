//! The expansion of the attributes. It is apart from the macros because tests cannot call those.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned, ToTokens};
use std::collections::HashSet;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, FnArg, GenericParam, Ident, Item, ItemFn, ItemMod, Lit, LitStr, Meta, MetaNameValue};
use syn::{Pat, PatType, Result, ReturnType, Token, Type};

const KINDS: [&str; 5] = ["tool", "resource", "template", "prompt", "completer"];

/// The function that registers the handlers of a module.
const REGISTER: &str = "handlers";

/// Expands `#[hako::plugin]`. With errors the item stays too, so that the compiler does not also miss what is in it.
pub fn plugin(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Vec::new();
    if !arguments.is_empty() {
        errors.push(Error::new_spanned(&arguments, "`#[hako::plugin]` takes no arguments"));
    }
    let expanded = match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Mod(module)) => expand_module(module, &mut errors),
        Ok(Item::Fn(function)) => expand_function(function, &mut errors),
        Ok(other) => {
            let text = "`#[hako::plugin]` is for a module with handlers, or for a function that registers them";
            errors.push(Error::new_spanned(other, text));
            item
        }
        Err(error) => return error.into_compile_error(),
    };
    let errors = errors.iter().map(Error::to_compile_error);
    quote!(#expanded #(#errors)*)
}

/// Expands an attribute of a handler where no `#[hako::plugin]` has removed it.
pub fn misplaced(kind: &str, item: TokenStream) -> TokenStream {
    let text = format!("`#[{kind}]` is for functions that are directly in a module with `#[hako::plugin]`: move this there");
    let error = Error::new(Span::call_site(), text).into_compile_error();
    quote!(#error #item)
}

fn expand_function(function: ItemFn, errors: &mut Vec<Error>) -> TokenStream {
    if let Err(error) = check_signature(&function, "a function that registers handlers") {
        errors.push(error);
        return function.into_token_stream();
    }
    let exports = exports(&function.sig.ident);
    quote!(#function #exports)
}

fn expand_module(mut module: ItemMod, errors: &mut Vec<Error>) -> TokenStream {
    let Some((_, items)) = &mut module.content else {
        errors.push(Error::new_spanned(&module, "the handlers must be here: write `mod NAME { ... }`, not `mod NAME;`"));
        return module.into_token_stream();
    };
    let mut registrations = Vec::new();
    let mut keys = HashSet::new();
    for item in items.iter_mut() {
        let Item::Fn(function) = item else { continue };
        if function.sig.ident == REGISTER {
            let text = format!("`#[hako::plugin]` makes the function `{REGISTER}` of this module: choose another name");
            errors.push(Error::new_spanned(&function.sig.ident, text));
            function.sig.ident = Ident::new("handlers_of_author", function.sig.ident.span());
        }
        let (attributes, others) = std::mem::take(&mut function.attrs).into_iter().partition(|a| kind_of(a).is_some());
        function.attrs = others;
        let attributes: Vec<Attribute> = attributes;
        if attributes.is_empty() {
            continue;
        }
        let parameters = take_parameters(function);
        let parameters = check_signature(function, "a handler").and(parameters);
        for attribute in &attributes {
            let handler = Handler::new(attribute, function).and_then(|handler| {
                // Only the compiler knows which of the functions with #[cfg] exist. For these, registering panics.
                if !function.attrs.iter().any(|a| a.path().is_ident("cfg")) && !keys.insert(handler.key()) {
                    return Err(Error::new(handler.span, format!("there are two handlers for {}", handler.title())));
                }
                Ok(handler)
            });
            match handler {
                Ok(handler) => {
                    if let Ok(parameters) = &parameters {
                        match handler.register(parameters, function) {
                            Ok(registration) => registrations.push(registration),
                            Err(error) => errors.push(error),
                        }
                    }
                }
                Err(error) => errors.push(error),
            }
        }
        if let Err(error) = parameters {
            errors.push(error);
        }
    }
    let register = Ident::new(REGISTER, Span::call_site());
    items.push(Item::Verbatim(quote! {
        // For suggestions of the compiler, and for errors where the attributes do not belong.
        #[allow(unused_imports)]
        use ::hako::attributes::*;

        /// Registers the handlers of this module.
        #[allow(dead_code)]
        pub fn #register(plugin: &mut ::hako::Plugin) {
            #(#registrations)*
        }
    }));
    items.push(Item::Verbatim(exports(&register)));
    module.into_token_stream()
}

/// The exports of ABI 1, beside the function that registers the handlers.
fn exports(register: &Ident) -> TokenStream {
    let span = Span::mixed_site().located_at(register.span());
    quote_spanned! {span=>
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            #[no_mangle]
            extern "C" fn hako_abi_1() {}

            #[no_mangle]
            extern "C" fn hako_call(length: usize) -> i32 {
                ::hako::serve_request(length, #register)
            }
        };
    }
}

/// The kind of handler that an attribute, such as `#[tool]` or `#[hako::tool]`, makes of a function.
fn kind_of(attribute: &Attribute) -> Option<&'static str> {
    let segments: Vec<String> = attribute.path().segments.iter().map(|s| s.ident.to_string()).collect();
    match segments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [name] | ["hako", name] => KINDS.into_iter().find(|kind| *kind == name),
        _ => None,
    }
}

fn check_signature(function: &ItemFn, what: &str) -> Result<()> {
    let signature = &function.sig;
    if let Some(keyword) = &signature.asyncness {
        let text = format!("{what} cannot be async: an instance serves one call at a time, so it may wait");
        return Err(Error::new_spanned(keyword, text));
    }
    if let Some(generic) = signature.generics.params.iter().find(|p| !matches!(p, GenericParam::Lifetime(_))) {
        return Err(Error::new_spanned(generic, format!("{what} cannot be generic: the host calls it by name alone")));
    }
    if let Some(receiver) = signature.receiver() {
        return Err(Error::new_spanned(receiver, format!("{what} cannot have `self`: a call starts with nothing but its arguments")));
    }
    Ok(())
}

/// What an attribute and its function say about a handler.
struct Handler {
    kind: &'static str,
    /// The name, URI or URI template, for a completer what it is of, and where that is.
    name: String,
    span: Span,
    /// The argument or variable of a completer.
    argument: Option<String>,
}

impl Handler {
    fn new(attribute: &Attribute, function: &ItemFn) -> Result<Self> {
        let kind = kind_of(attribute).unwrap_or_default();
        let (name, argument) = match kind {
            "tool" | "prompt" if matches!(attribute.meta, Meta::Path(_)) => {
                let ident = &function.sig.ident;
                let name = ident.to_string();
                let name = name.strip_prefix("r#").unwrap_or(&name);
                return Ok(Handler { kind, name: name.to_string(), span: ident.span(), argument: None });
            }
            "completer" => {
                let Completes { of, argument } = parse_arguments(attribute, r#"#[completer(of = "greet", argument = "name")]"#)?;
                (of, Some(argument.value()))
            }
            "tool" | "prompt" => {
                let usage = format!("#[{kind}], or #[{kind}(\"other_name\")] if the function has another name");
                (parse_arguments(attribute, &usage)?, None)
            }
            "resource" => (parse_arguments(attribute, r#"#[resource("notes://all")], with the URI"#)?, None),
            _ => (parse_arguments(attribute, r#"#[template("notes://{id}")], with the URI template"#)?, None),
        };
        if name.value().is_empty() || argument.as_deref() == Some("") {
            return Err(Error::new_spanned(&attribute.meta, format!("a name in `#[{kind}]` is empty")));
        }
        Ok(Handler { kind, name: name.value(), span: name.span(), argument })
    }

    /// Two handlers cannot have the same key.
    fn key(&self) -> (&'static str, String, Option<String>) {
        (self.kind, self.name.clone(), self.argument.clone())
    }

    fn title(&self) -> String {
        match &self.argument {
            Some(argument) => format!("the completion of `{argument}` of `{}`", self.name),
            None => format!("the {} `{}`", self.kind, self.name),
        }
    }

    /// Returns the statement that registers the handler. Errors of its types are shown at the function's result.
    fn register(&self, parameters: &Parameters, function: &ItemFn) -> Result<TokenStream> {
        let ReturnType::Type(_, result) = &function.sig.output else {
            let text = format!("a handler returns a `hako::Result`, such as `Result<{}>`", self.result());
            return Err(Error::new_spanned(&function.sig.ident, text));
        };
        self.check(parameters)?;
        let span = Span::mixed_site().located_at(result.span());
        let (kind, name) = (Ident::new(self.kind, span), LitStr::new(&self.name, self.span));
        let argument = self.argument.iter();
        let text = (self.kind != "tool" && self.kind != "prompt").then(|| quote_spanned!(span=> text: &str,));
        let (struct_of_fields, values_type) = parameters.values_type(span);
        let values = (self.kind != "resource").then(|| quote_spanned!(span=> values: #values_type));
        let passed = parameters.passed(span);
        let (ident, cfg) = (&function.sig.ident, function.attrs.iter().filter(|a| a.path().is_ident("cfg")));
        let plugin = Ident::new("plugin", Span::call_site());
        Ok(quote_spanned! {span=>
            #(#cfg)*
            {
                #struct_of_fields
                #plugin.#kind(#name, #(#argument,)* |call: &::hako::Call, #text #values| self::#ident(#passed));
            }
        })
    }

    fn result(&self) -> &'static str {
        match self.kind {
            "tool" => "String",
            "prompt" => "Prompt",
            "completer" => "Vec<String>",
            _ => "Vec<Contents>",
        }
    }

    /// Checks the parameters that not every kind of handler has.
    fn check(&self, parameters: &Parameters) -> Result<()> {
        if let Some(text) = parameters.text.as_ref().filter(|_| self.kind == "tool" || self.kind == "prompt") {
            return Err(Error::new_spanned(text, "an argument is a value of its own: take a `String` in place of `&str`"));
        }
        let values = parameters.fields.iter().chain(&parameters.all);
        if let Some(value) = values.clone().next().filter(|_| self.kind == "resource") {
            let text = "a resource has no arguments: its handler takes `&Call`, and the URI as `&str`";
            return Err(Error::new_spanned(value, text));
        }
        if self.kind != "template" {
            return Ok(());
        }
        let variables = variables(&self.name);
        for field in parameters.fields.iter().filter(|f| f.attrs.is_empty()) {
            let name = field.pat.to_token_stream().to_string();
            let name = name.strip_prefix("r#").unwrap_or(&name);
            if !variables.contains(&name) {
                let text = format!("the template `{}` has no variable `{name}`", self.name);
                return Err(Error::new_spanned(&field.pat, text));
            }
        }
        Ok(())
    }
}

/// The names of the variables in a URI template of RFC 6570.
fn variables(template: &str) -> Vec<&str> {
    let expressions = template.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let lists = expressions.map(|(list, _)| list.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']));
    lists.flat_map(|list| list.split(',')).map(|v| v.trim_end_matches('*').split(':').next().unwrap_or_default()).collect()
}

fn parse_arguments<T: Parse>(attribute: &Attribute, usage: &str) -> Result<T> {
    let error = |at: Span| Error::new(at, format!("write {usage}"));
    match &attribute.meta {
        Meta::List(list) => syn::parse2(list.tokens.clone()).map_err(|_| error(list.span())),
        meta => Err(error(meta.span())),
    }
}

/// The arguments of `#[completer]`.
struct Completes {
    of: LitStr,
    argument: LitStr,
}

impl Parse for Completes {
    fn parse(input: ParseStream) -> Result<Self> {
        let (mut of, mut argument) = (None, None);
        for pair in Punctuated::<MetaNameValue, Token![,]>::parse_terminated(input)? {
            let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = pair.value else { return Err(input.error("no text")) };
            let name = if pair.path.is_ident("of") {
                &mut of
            } else if pair.path.is_ident("argument") {
                &mut argument
            } else {
                return Err(input.error("unknown name"));
            };
            if name.replace(text).is_some() {
                return Err(input.error("a name twice"));
            }
        }
        match (of, argument) {
            (Some(of), Some(argument)) => Ok(Completes { of, argument }),
            _ => Err(input.error("a name is missing")),
        }
    }
}

/// The parameters of a handler, in their order.
#[derive(Default)]
struct Parameters {
    call: bool,
    text: Option<PatType>,
    /// Parameters that are decoded by their names, with their attributes for serde, or the one for all values.
    fields: Vec<PatType>,
    all: Option<PatType>,
}

/// Reads the parameters of a handler, and removes their attributes that the compiler does not know.
fn take_parameters(function: &mut ItemFn) -> Result<Parameters> {
    let mut parameters = Parameters::default();
    let mut first_error = None;
    for (i, input) in function.sig.inputs.iter_mut().enumerate() {
        let FnArg::Typed(parameter) = input else { continue };
        let mut decoded = parameter.clone();
        parameter.attrs.retain(|a| !a.path().is_ident("arguments") && !a.path().is_ident("serde"));
        decoded.attrs.retain(|a| a.path().is_ident("arguments") || a.path().is_ident("serde"));
        if let Err(error) = parameters.add(i, decoded) {
            first_error.get_or_insert(error);
        }
    }
    first_error.map_or(Ok(parameters), Err)
}

impl Parameters {
    fn add(&mut self, position: usize, mut parameter: PatType) -> Result<()> {
        if let Type::Reference(reference) = &*parameter.ty {
            let name = match &*reference.elem {
                Type::Path(path) => path.path.segments.last().map(|s| s.ident.to_string()),
                _ => None,
            };
            return match name.as_deref() {
                _ if reference.mutability.is_some() => Err(Error::new_spanned(&parameter.ty, "a handler gets nothing to change")),
                Some("Call") if position == 0 => {
                    self.call = true;
                    Ok(())
                }
                Some("Call") => Err(Error::new_spanned(&parameter.ty, "`&Call` must be the first parameter")),
                Some("str") if self.fields.is_empty() && self.all.is_none() && self.text.is_none() => {
                    self.text = Some(parameter);
                    Ok(())
                }
                Some("str") => Err(Error::new_spanned(
                    &parameter.ty,
                    "an argument is a value of its own: take a `String`; one `&str`, for the URI or the text to complete, comes before them",
                )),
                _ => {
                    let text = "an argument is a value of its own: take it without `&`, as `String` or `Vec<T>`";
                    Err(Error::new_spanned(&parameter.ty, text))
                }
            };
        }
        if let Type::ImplTrait(generic) = &*parameter.ty {
            return Err(Error::new_spanned(generic, "a handler cannot be generic: name the type of the parameter"));
        }
        if let Some(all) = parameter.attrs.iter().find(|a| a.path().is_ident("arguments")) {
            if !matches!(all.meta, Meta::Path(_)) {
                return Err(Error::new_spanned(all, "write `#[arguments]`, without more"));
            }
            if !self.fields.is_empty() || self.all.is_some() {
                return Err(Error::new_spanned(all, "a parameter with `#[arguments]` takes all: remove the others, or this"));
            }
            parameter.attrs.clear();
            self.all = Some(parameter);
            return Ok(());
        }
        if self.all.is_some() {
            return Err(Error::new_spanned(&parameter, "the parameter with `#[arguments]` takes all: remove this one, or that"));
        }
        match &mut *parameter.pat {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => name.mutability = None,
            pattern => {
                let text = "a parameter has the name of the argument: write `name: Type`, or take all with `#[arguments]`";
                return Err(Error::new_spanned(pattern, text));
            }
        }
        self.fields.push(parameter);
        Ok(())
    }

    /// The type that the values are decoded into, and its definition if that is not the author's.
    fn values_type(&self, span: Span) -> (TokenStream, TokenStream) {
        if let Some(all) = &self.all {
            return (TokenStream::new(), all.ty.to_token_stream());
        }
        let fields = &self.fields;
        let define = quote_spanned! {span=>
            #[derive(::hako::serde::Deserialize)]
            #[serde(crate = "::hako::serde")]
            struct __Values { #(#fields,)* }
        };
        (define, quote_spanned!(span=> __Values))
    }

    /// What a handler is called with.
    fn passed(&self, span: Span) -> TokenStream {
        let call = self.call.then(|| quote_spanned!(span=> call,));
        let text = self.text.as_ref().map(|_| quote_spanned!(span=> text,));
        let all = self.all.as_ref().map(|_| quote_spanned!(span=> values,));
        let names = self.fields.iter().map(|f| &f.pat);
        quote_spanned!(span=> #call #text #all #(values.#names,)*)
    }
}
