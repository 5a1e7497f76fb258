//! Finds what a module's text declares, imports and names.

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::iter::Peekable;
use std::vec::IntoIter;

/// A path, split at its `::`.
pub type Names = Vec<String>;

/// One import: `use path as name`.
#[derive(Debug, Clone)]
pub struct Import {
    /// The name in this module; `*` for all names of the path.
    pub name: String,
    /// The path that it stands for.
    pub path: Names,
    /// Whether other modules may use it (`pub`, `pub(crate)`).
    pub exported: bool,
}

/// The contents of a module's text, without items for tests.
#[derive(Debug, Default)]
pub struct Found {
    /// `mod name;`, with the file that a `#[path]` names.
    pub files: Vec<(String, Option<String>)>,
    /// `mod name { … }`
    pub inline: Vec<(String, Found)>,
    /// Functions, types, constants, traits and macros of the module itself.
    pub items: BTreeSet<String>,
    /// Imports, including those within functions.
    pub imports: Vec<Import>,
    /// Paths of two or more names in code.
    pub paths: BTreeSet<Names>,
    /// All names in code outside imports.
    pub names: BTreeSet<String>,
}

type Tokens = Peekable<IntoIter<TokenTree>>;

/// Reads the text of a module.
pub fn read(text: &str) -> Result<Found, LexError> {
    let mut found = Found::default();
    items(tokens(text.parse()?), true, &mut found);
    Ok(found)
}

fn tokens(stream: TokenStream) -> Tokens {
    stream.into_iter().collect::<Vec<_>>().into_iter().peekable()
}

/// Reads a sequence of tokens; with `top`, items belong to the module itself.
fn items(mut rest: Tokens, top: bool, found: &mut Found) {
    let (mut exported, mut file) = (false, None);
    while let Some(token) = rest.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                file = attribute(&mut rest).or(file);
                continue;
            }
            TokenTree::Group(group) => items(tokens(group.stream()), false, found),
            TokenTree::Ident(word) => match word.to_string().as_str() {
                "pub" => {
                    exported = true;
                    rest.next_if(|next| matches!(next, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis));
                    continue;
                }
                // `use<'a>` in a bound is not an import.
                "use" if !matches!(rest.peek(), Some(TokenTree::Punct(mark)) if mark.as_char() == '<') => {
                    imports(&mut rest, exported, found)
                }
                "mod" => module(&mut rest, file.take(), found),
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union" if top => {
                    item(&mut rest, found)
                }
                word => path(word.to_string(), &mut rest, found),
            },
            _ => {}
        }
        (exported, file) = (false, None);
    }
}

/// After a `#`: skips the attribute, and its item if that is only for tests. Returns the file of a `#[path]`.
fn attribute(rest: &mut Tokens) -> Option<String> {
    rest.next_if(|next| matches!(next, TokenTree::Punct(mark) if mark.as_char() == '!'));
    let Some(TokenTree::Group(group)) = rest.next_if(|next| matches!(next, TokenTree::Group(_))) else {
        return None;
    };
    let text: String = group.stream().to_string().split_whitespace().collect();
    if text.starts_with("cfg(test") || text.starts_with("cfg(all(test") || text == "test" {
        skip_item(rest);
    }
    Some(text.strip_prefix("path=\"")?.strip_suffix('"')?.to_owned())
}

/// An item ends with its block or a semicolon; the braces of an import are not a block.
fn skip_item(rest: &mut Tokens) {
    let mut import = false;
    for token in rest {
        match token {
            TokenTree::Ident(word) if word == "use" => import = true,
            TokenTree::Punct(mark) if mark.as_char() == ';' => return,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !import => return,
            _ => {}
        }
    }
}

fn module(rest: &mut Tokens, file: Option<String>, found: &mut Found) {
    let Some(TokenTree::Ident(name)) = rest.next() else { return };
    let name = name.to_string();
    match rest.next() {
        Some(TokenTree::Group(group)) => {
            let mut content = Found::default();
            items(tokens(group.stream()), true, &mut content);
            found.inline.push((name, content));
        }
        _ => found.files.push((name, file)),
    }
}

/// After `fn`, `struct` …: takes the name. The rest is read as code.
fn item(rest: &mut Tokens, found: &mut Found) {
    while rest
        .next_if(|next| matches!(next, TokenTree::Ident(word) if word == "mut" || word == "fn"))
        .is_some()
    {}
    if let Some(TokenTree::Ident(name)) = rest.next_if(|next| matches!(next, TokenTree::Ident(_))) {
        found.items.insert(name.to_string());
    }
}

/// A name in code, and the path that may follow.
fn path(first: String, rest: &mut Tokens, found: &mut Found) {
    let mut names = vec![first];
    while colons(rest) {
        match rest.next_if(|next| matches!(next, TokenTree::Ident(_))) {
            Some(name) => names.push(name.to_string()),
            None => break,
        }
    }
    found.names.insert(names[0].clone());
    let is_mark = |next: &TokenTree| matches!(next, TokenTree::Punct(mark) if mark.as_char() == '!');
    if names[0] == "macro_rules" && rest.next_if(is_mark).is_some() {
        found.items.extend(rest.next().map(|name| name.to_string()));
    }
    if names.len() > 1 {
        found.paths.insert(names);
    }
}

/// Consumes `::` if it is next.
fn colons(rest: &mut Tokens) -> bool {
    let colon = |next: &TokenTree| matches!(next, TokenTree::Punct(mark) if mark.as_char() == ':' && mark.spacing() == proc_macro2::Spacing::Joint);
    rest.next_if(colon).is_some() && rest.next().is_some()
}

/// After `use`: records all imports.
fn imports(rest: &mut Tokens, exported: bool, found: &mut Found) {
    let clause: Vec<TokenTree> = rest
        .by_ref()
        .take_while(|token| !matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';'))
        .collect();
    branch(clause, &[], exported, found);
}

/// One branch of an import: names, then a group of branches, a `*`, `as name` or nothing.
fn branch(clause: Vec<TokenTree>, before: &[String], exported: bool, found: &mut Found) {
    let mut path = before.to_vec();
    let mut rest = clause.into_iter();
    let mut alias = None;
    while let Some(token) = rest.next() {
        match token {
            TokenTree::Ident(word) if word == "as" => alias = rest.next().map(|name| name.to_string()),
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Punct(mark) if mark.as_char() == '*' => alias = Some("*".to_owned()),
            TokenTree::Group(group) => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                for part in
                    inside.split(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ','))
                {
                    branch(part.to_vec(), &path, exported, found);
                }
                return;
            }
            _ => {}
        }
    }
    if path.len() == before.len() && alias.is_none() {
        return; // after a last comma
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(name) = alias.or_else(|| path.last().cloned()) {
        found.imports.push(Import { name, path, exported });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Found {
        read(text).expect("tokens")
    }

    #[test]
    fn imports_are_split_into_their_branches() {
        let found = found("use crate::{a::{self, B as C}, d::*}; pub(crate) use e::F;");
        let all: Vec<String> = found
            .imports
            .iter()
            .map(|import| {
                format!(
                    "{}={}{}",
                    import.name,
                    import.path.join("::"),
                    if import.exported { "!" } else { "" }
                )
            })
            .collect();
        assert_eq!(all, ["a=crate::a", "C=crate::a::B", "*=crate::d", "F=e::F!"]);
    }

    #[test]
    fn comments_strings_and_tests_do_not_count() {
        let found = found(
            "//! [`crate::a::B`]\n/// [`crate::c::D`]\nfn x() { let _ = \"crate::e::F\"; crate::g::H::new(); }\n#[cfg(test)] use crate::{i, j};\n#[cfg(test)] mod tests { use crate::k::L; }\nmod m;",
        );
        assert_eq!(found.paths.iter().map(|path| path.join("::")).collect::<Vec<_>>(), ["crate::g::H::new"]);
        assert!(found.imports.is_empty() && found.inline.is_empty());
        assert_eq!(found.files, [("m".to_owned(), None)]);
        assert_eq!(found.items.iter().collect::<Vec<_>>(), ["x"]);
    }

    #[test]
    fn a_module_may_be_in_another_file() {
        let found = found("#[path = \"../a.rs\"]\n#[allow(dead_code)]\npub mod m; mod n;");
        assert_eq!(found.files, [("m".to_owned(), Some("../a.rs".to_owned())), ("n".to_owned(), None)]);
    }
}
