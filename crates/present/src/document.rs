//! What a verb prints: one document, as JSON or as text.

use serde::Serialize;

use crate::exit::Outcome;
use crate::putln;

/// Prints the document as JSON if `json`, else as text by `show`.
///
/// # Errors
/// It has no form in JSON.
pub fn print<T: Serialize>(json: bool, document: &T, show: impl FnOnce(&T)) -> Outcome<()> {
    if json {
        return print_json(document);
    }
    show(document);
    Ok(())
}

/// Prints the document as JSON.
///
/// # Errors
/// It has no form in JSON.
pub fn print_json(document: &impl Serialize) -> Outcome<()> {
    putln!("{}", serde_json::to_string_pretty(document)?);
    Ok(())
}
