//! Syntax that is newer than the oldest Rust that the workspace names (1.85). Its compiler is not on every developer's machine, and
//! clippy's `incompatible_msrv` finds functions of std only.

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

/// The lines with a condition of `let` and `&&` (Rust 1.88).
///
/// # Errors
/// The text is not Rust.
pub fn let_chains(text: &str) -> Result<Vec<usize>, LexError> {
    let mut lines = Vec::new();
    search(text.parse()?, &mut lines);
    Ok(lines)
}

fn search(stream: TokenStream, lines: &mut Vec<usize>) {
    let mut condition = None;
    let mut last = ' ';
    for token in stream {
        match &token {
            TokenTree::Ident(word) if word == "if" || word == "while" => {
                condition = Some(Condition::default())
            }
            TokenTree::Ident(word) if word == "let" => condition.iter_mut().for_each(|c| c.has_let = true),
            TokenTree::Punct(mark) => {
                let ands = mark.as_char() == '&' && last == '&';
                condition.iter_mut().for_each(|c| c.has_and |= ands);
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let ended = condition.take().filter(|c| c.has_let && c.has_and);
                lines.extend(ended.map(|_| group.span_open().start().line));
            }
            _ => {}
        }
        last = if let TokenTree::Punct(mark) = &token { mark.as_char() } else { ' ' };
        if let TokenTree::Group(group) = token {
            search(group.stream(), lines);
        }
    }
}

/// What stands between `if` and its block, outside parentheses.
#[derive(Debug, Default)]
struct Condition {
    has_let: bool,
    has_and: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_found_and_other_conditions_are_not() {
        let lines = |text: &str| let_chains(text).unwrap_or_default();
        assert_eq!(lines("fn f() {\n if let Some(a) = b\n && a {\n} }"), [3]);
        assert_eq!(lines("fn f() { while a && let Some(a) = b { x } }"), [1]);
        assert_eq!(lines("fn f() { if a && b { if let Some(x) = y { } } }"), Vec::<usize>::new());
        assert_eq!(lines("fn f() { if let Some(x) = y.filter(|y| a && b) { } }"), Vec::<usize>::new());
    }
}
