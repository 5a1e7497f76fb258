//! Numbers in the text of a page. Pure, but for the values.

use std::ops::Range;

use anyhow::{Context, Result, ensure};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::Regex;

use super::claims::{Claim, PageClaims};
use super::passage::{NUMBER, passage};
use super::value::Results;

/// What makes a number in a sentence count. In a table any number counts.
const UNITS: &str = "(?:%|(?:s|ms|µs|ns|minutes|hours|seconds|B|KB|KiB|MB|MiB|GB|GiB|KB/s|MB/s|GB/s|times|documents|tabs)\\b)";

/// The text with the values of its claims, and what no value mends.
///
/// # Errors
/// No result has the value of a claim.
pub fn checked(text: &str, claims: &PageClaims, results: &mut Results) -> Result<(String, Vec<String>)> {
    let mut faults = Vec::new();
    let mut known: Vec<Range<usize>> = Vec::new();
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    for claim in &claims.claims {
        match places(text, claim)? {
            Ok(places) => {
                for (measurement, place) in claim.values.iter().zip(places) {
                    let value =
                        results.value(measurement, &claim.common).with_context(|| claim.text.clone())?;
                    changes.push((place.clone(), like(&text[place.clone()], value)));
                    known.push(place);
                }
            }
            Err(fault) => faults.push(fault),
        }
    }
    for other in &claims.others {
        let found: Vec<_> = passage(other)?.find_iter(text).map(|found| found.range()).collect();
        faults.extend(
            found.is_empty().then(|| format!("docs/measurements.toml: the page does not have \"{other}\"")),
        );
        known.extend(found);
    }
    let is_known =
        |number: &Range<usize>| known.iter().any(|k| k.start <= number.start && number.end <= k.end);
    let unknown = numbers(text)?.into_iter().filter(|number| !is_known(number));
    faults.extend(unknown.map(|number| unaccounted(text, &number)));
    Ok((changed(text, changes), faults))
}

fn unaccounted(text: &str, number: &Range<usize>) -> String {
    let line = text[..number.start].matches('\n').count() + 1;
    let whole = text.lines().nth(line - 1).unwrap_or_default();
    format!(
        "line {line}: docs/measurements.toml does not say where {} comes from: {whole}",
        &text[number.clone()]
    )
}

/// Where the values of a claim are, or why not.
fn places(text: &str, claim: &Claim) -> Result<Result<Vec<Range<usize>>, String>> {
    let pattern = passage(&claim.text)?;
    ensure!(
        pattern.captures_len() == claim.values.len() + 1,
        "docs/measurements.toml: \"{}\" has {} {{}} and {} values",
        claim.text,
        pattern.captures_len() - 1,
        claim.values.len()
    );
    let found: Vec<_> = pattern.captures_iter(text).collect();
    let [one] = &found[..] else {
        return Ok(Err(format!(
            "docs/measurements.toml: the page has {} times \"{}\"",
            found.len(),
            claim.text
        )));
    };
    Ok(Ok(one.iter().skip(1).flatten().map(|group| group.range()).collect()))
}

/// The value with as many decimals as the number on the page.
fn like(shown: &str, value: f64) -> String {
    let decimals = shown.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let plain = format!("{value:.decimals$}");
    if !shown.contains(',') {
        return plain;
    }
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let groups: Vec<&str> = (0..whole.len().div_ceil(3))
        .rev()
        .map(|n| &whole[whole.len().saturating_sub(3 * (n + 1))..whole.len() - 3 * n])
        .collect();
    groups.join(",") + rest
}

/// All numbers of a page that count, outside of code.
fn numbers(text: &str) -> Result<Vec<Range<usize>>> {
    let measured = Regex::new(&format!(r"(?:^|[^\w.\-/])({NUMBER})\s*{UNITS}"))?;
    let any = Regex::new(&format!(r"(?:^|[^\w.\-/])({NUMBER})(?:\b|$)"))?;
    let mut found = Vec::new();
    for Prose { range, is_cell } in prose(text) {
        let pattern = if is_cell { &any } else { &measured };
        let groups = pattern.captures_iter(&text[range.clone()]).filter_map(|found| found.get(1));
        found.extend(groups.map(|g| range.start + g.start()..range.start + g.end()));
    }
    Ok(found)
}

/// A piece of text without marks.
struct Prose {
    range: Range<usize>,
    /// Whether it is in the body of a table.
    is_cell: bool,
}

/// The text outside of code; a line and the next of its paragraph are one piece.
fn prose(text: &str) -> Vec<Prose> {
    let (mut all, mut is_code, mut is_cell) = (Vec::<Prose>::new(), false, false);
    // Whether the last event was text, and whether only the end of its line has come since.
    let (mut was_text, mut goes_on) = (false, false);
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let is_next_line = std::mem::replace(&mut goes_on, was_text && event == Event::SoftBreak);
        was_text = matches!(event, Event::Text(_));
        match event {
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Start(Tag::TableRow) => is_cell = true,
            Event::End(TagEnd::TableRow) => is_cell = false,
            Event::Text(_) if !is_code => match all.last_mut().filter(|_| is_next_line) {
                Some(piece) => piece.range.end = range.end,
                None => all.push(Prose { range, is_cell }),
            },
            _ => {}
        }
    }
    all
}

fn changed(text: &str, mut changes: Vec<(Range<usize>, String)>) -> String {
    changes.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    let mut text = text.to_owned();
    changes.into_iter().for_each(|(place, number)| text.replace_range(place, &number));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_form() {
        assert_eq!(like("65", 64.6), "65");
        assert_eq!(like("0.57", 0.5701), "0.57");
        assert_eq!(like("1,234", 1_234_567.8), "1,234,568");
        assert_eq!(like("17,000.5", 999.0), "999.0");
    }

    #[test]
    fn numbers_with_units_count_and_all_of_a_table() {
        let page = "Takes 1.5\ns (`9 s`\nx), 4 KiB-files, Linux 6.9, 68 ms instead of 13, **240 MB/s**.\n\n\
            | 3 s | b |\n| --- | --- |\n| x | 1,234.5, 7 |\n\n    9 ms\n";
        let found: Vec<&str> = numbers(page).unwrap().into_iter().map(|range| &page[range]).collect();
        assert_eq!(found, ["1.5", "4", "68", "240", "3", "1,234.5", "7"]);
    }
}
