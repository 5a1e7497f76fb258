//! Chooses the documents of an experiment. Pure.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::Document;
use super::error::{Error, Result};

/// A megabyte as the study counts it.
const MB: u64 = 1_000_000;
/// The most bytes of a name before its ending.
const LONGEST_STEM: usize = 200;

/// The documents that an experiment needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirements {
    /// How many documents.
    pub count: usize,
    /// The least pages of each.
    pub pages: u32,
    /// The range of their sizes in bytes.
    pub bytes: RangeInclusive<u64>,
}

impl Requirements {
    /// `count` documents of 1 to 1.5 MB with at least 51 pages, as in the study: page 1 to 50 and back.
    pub fn of_the_study(count: usize) -> Self {
        Self { count, pages: 51, bytes: MB..=MB * 3 / 2 }
    }
}

/// The chosen documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// As many as required, the nearest in size first. Their names differ.
    pub documents: Vec<Document>,
    /// What deviates from the requirements, in sentences for the report.
    pub notes: Vec<String>,
}

/// The documents with enough pages whose size is nearest to the required range; of equally near ones the first by name. If there
/// are too few, repeats them in the same order under other names.
///
/// # Errors
/// None has enough pages.
pub fn choose(found: &[Document], required: &Requirements) -> Result<Choice> {
    let mut fit: Vec<&Document> = found.iter().filter(|d| d.pages >= required.pages).collect();
    fit.sort_by(|a, b| {
        deviation(a, required)
            .cmp(&deviation(b, required))
            .then_with(|| (&a.name, &a.path).cmp(&(&b.name, &b.path)))
    });
    if fit.is_empty() {
        return Err(none_fits(found, required.pages));
    }
    let taken = &fit[..fit.len().min(required.count)];
    let documents = renamed(fit.iter().cycle().take(required.count));
    let notes =
        [size_note(taken, required), copies_note(fit.len(), required.count)].into_iter().flatten().collect();
    Ok(Choice { documents, notes })
}

/// How many times too large or too small a document is, in thousandths; 0 if its size is in the range.
fn deviation(document: &Document, required: &Requirements) -> u64 {
    let size = document.bytes.0.max(1);
    let (least, most) = (*required.bytes.start(), *required.bytes.end());
    let times = |large: u64, small: u64| large.saturating_mul(1000) / small.max(1);
    if size < least {
        times(least, size)
    } else if size > most {
        times(size, most)
    } else {
        0
    }
}

fn none_fits(found: &[Document], pages: u32) -> Error {
    let longest = found.iter().max_by_key(|d| d.pages);
    let longest = longest.map(|d| format!(" (the longest, {}, has {})", d.name, d.pages)).unwrap_or_default();
    Error::NoneFits { found: found.len(), pages, longest }
}

/// Shortens a name so that it fits into 255 bytes (NAME_MAX) with its number and ending. A name that was not UTF-8 has grown.
fn shortened(stem: &str) -> &str {
    let end = (0..=stem.len().min(LONGEST_STEM)).rev().find(|end| stem.is_char_boundary(*end));
    &stem[..end.unwrap_or(0)]
}

/// Makes names unique: the second of a name becomes `NAME-2.pdf`.
fn renamed<'a>(documents: impl Iterator<Item = &'a &'a Document>) -> Vec<Document> {
    let mut names = BTreeSet::new();
    let free = |name: &str, names: &BTreeSet<String>| {
        let stem = shortened(name.strip_suffix(".pdf").unwrap_or(name));
        let others = (2_usize..).map(|n| format!("{stem}-{n}.pdf"));
        std::iter::once(format!("{stem}.pdf")).chain(others).find(|n| !names.contains(n)).unwrap_or_default()
    };
    documents
        .map(|d| {
            let name = free(&d.name, &names);
            names.insert(name.clone());
            Document { name, ..(*d).clone() }
        })
        .collect()
}

fn size_note(taken: &[&Document], required: &Requirements) -> Option<String> {
    let others: Vec<u64> =
        taken.iter().map(|d| d.bytes.0).filter(|size| !required.bytes.contains(size)).collect();
    let (least, most) = (others.iter().min()?, others.iter().max()?);
    let right = taken.len() - others.len();
    let have = if right == 1 { "has" } else { "have" };
    Some(format!(
        "{right} of {} documents with {} pages or more {have} {}; the nearest others {}",
        taken.len(),
        required.pages,
        range(*required.bytes.start(), *required.bytes.end()),
        range(*least, *most),
    ))
}

fn copies_note(found: usize, count: usize) -> Option<String> {
    let added = count.checked_sub(found).filter(|added| *added > 0)?;
    Some(format!(
        "{found} different documents were found; {added} of {count} are copies of them under other names"
    ))
}

/// `0.8 MB`, `1 to 1.5 MB`.
fn range(least: u64, most: u64) -> String {
    let text = |bytes: u64| {
        let text = format!("{:.2}", bytes as f64 / MB as f64);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if least == most { format!("{} MB", text(most)) } else { format!("{} to {} MB", text(least), text(most)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_model::units::Bytes;

    fn document(name: &str, kilobytes: u64, pages: u32) -> Document {
        Document {
            path: format!("/doc/{name}").into(),
            bytes: Bytes(kilobytes * 1000),
            pages,
            name: name.into(),
        }
    }

    fn names(choice: &Choice) -> Vec<&str> {
        choice.documents.iter().map(|d| d.name.as_str()).collect()
    }

    #[test]
    fn two_of_the_right_size_are_taken_by_name() {
        let found = [
            document("z.pdf", 1200, 60),
            document("b.pdf", 1500, 51),
            document("short.pdf", 1250, 50),
            document("a.pdf", 1000, 99),
            document("large.pdf", 1501, 99),
        ];
        let choice = choose(&found, &Requirements::of_the_study(2)).unwrap();
        assert_eq!((names(&choice), choice.notes.len()), (vec!["a.pdf", "b.pdf"], 0));
        let mut other = found.clone();
        other.reverse();
        assert_eq!(
            choose(&other, &Requirements::of_the_study(2)).unwrap(),
            choice,
            "independent of the order in which they are found"
        );
    }

    #[test]
    fn the_nearest_sizes_are_taken_with_a_note() {
        let found =
            [document("far.pdf", 9000, 60), document("near.pdf", 800, 60), document("right.pdf", 1100, 60)];
        let choice = choose(&found, &Requirements::of_the_study(2)).unwrap();
        assert_eq!(names(&choice), ["right.pdf", "near.pdf"]);
        let note = "1 of 2 documents with 51 pages or more has 1 to 1.5 MB; the nearest others 0.8 MB";
        assert_eq!(choice.notes, [note]);
    }

    #[test]
    fn too_few_are_copied_with_a_note() {
        let mut twin = document("a.pdf", 1200, 60);
        twin.path = "/other/a.pdf".into();
        let found = [document("a.pdf", 1100, 60), twin, document("a-2.pdf", 1300, 60)];
        let choice = choose(&found, &Requirements::of_the_study(5)).unwrap();
        assert_eq!(names(&choice), ["a-2.pdf", "a.pdf", "a-3.pdf", "a-2-2.pdf", "a-4.pdf"]);
        assert_eq!(
            choice.notes,
            ["3 different documents were found; 2 of 5 are copies of them under other names"]
        );
        assert_eq!(choice.documents[1].path, choice.documents[4].path);
    }

    #[test]
    fn without_any_the_error_names_the_longest() {
        let error = choose(&[document("short.pdf", 1200, 12)], &Requirements::of_the_study(2))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("none of 1 documents has 51 pages (the longest, short.pdf, has 12); `make"),
            "{error}"
        );
        assert!(
            choose(&[], &Requirements::of_the_study(2))
                .unwrap_err()
                .to_string()
                .starts_with("none of 0 documents")
        );
    }
}
