//! Passages of texts, with numbers in them. Pure.

use anyhow::{Context, Result};
use regex::Regex;

/// A number, as a group.
pub(super) const NUMBER: &str = r"([0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?)";

/// A passage: lines may be broken elsewhere, and `{}` is a number.
pub(super) fn passage(text: &str) -> Result<Regex> {
    let literal = |part: &str| {
        let words: Vec<String> = part.split(char::is_whitespace).map(regex::escape).collect();
        words.join(r"\s+")
    };
    let parts: Vec<String> = text.split("{}").map(literal).collect();
    Regex::new(&parts.join(NUMBER)).with_context(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_is_found_over_lines() {
        let found = passage("eke {}, peers {} (a+b)").unwrap();
        let page = "so: eke 19,\npeers 1.5 (a+b).";
        let captures = found.captures(page).unwrap();
        assert_eq!((&captures[1], &captures[2]), ("19", "1.5"));
    }
}
