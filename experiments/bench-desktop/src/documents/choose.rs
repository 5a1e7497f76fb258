//! Which documents an experiment takes. Pure.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::Document;
use super::error::{Error, Result};

/// A million bytes, as the study counts.
const MB: u64 = 1_000_000;
/// The most bytes of a name before its ending.
const LONGEST_STEM: usize = 200;

/// What an experiment would like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// How many documents.
    pub count: usize,
    /// The least pages of each.
    pub pages: u32,
    /// Their sizes.
    pub bytes: RangeInclusive<u64>,
}

impl Wish {
    /// So many of 1 to 1.5 MB with 51 pages or more, as in the study: page 1 to 50 and back.
    pub fn of_the_study(count: usize) -> Self {
        Self { count, pages: 51, bytes: MB..=MB * 3 / 2 }
    }
}

/// What it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// As many as were wished, the nearest to the wish first; their names differ.
    pub documents: Vec<Document>,
    /// What is not as wished, in sentences for the report.
    pub notes: Vec<String>,
}

/// The documents with enough pages whose size is nearest to the wish; of equally near ones the first by name. Where there
/// are too few, copies of them under other names, in the same order again.
///
/// # Errors
/// None has enough pages.
pub fn choose(found: &[Document], wish: &Wish) -> Result<Choice> {
    let mut fit: Vec<&Document> = found.iter().filter(|d| d.pages >= wish.pages).collect();
    fit.sort_by(|a, b| {
        order(a, wish).cmp(&order(b, wish)).then_with(|| (&a.name, &a.path).cmp(&(&b.name, &b.path)))
    });
    if fit.is_empty() {
        return Err(none_fits(found, wish.pages));
    }
    let taken = &fit[..fit.len().min(wish.count)];
    let documents = renamed(fit.iter().cycle().take(wish.count));
    let notes = [other_sizes(taken, wish), copies(fit.len(), wish.count)].into_iter().flatten().collect();
    Ok(Choice { documents, notes })
}

/// How many times too large or too small it is, in thousandths.
fn order(document: &Document, wish: &Wish) -> u64 {
    let size = document.bytes.0.max(1);
    let (least, most) = (*wish.bytes.start(), *wish.bytes.end());
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

/// A file's name has 255 bytes at most (NAME_MAX), with what is added to it; one that was not UTF-8 has grown.
fn shortened(stem: &str) -> &str {
    let end = (0..=stem.len().min(LONGEST_STEM)).rev().find(|end| stem.is_char_boundary(*end));
    &stem[..end.unwrap_or(0)]
}

/// The second of a name becomes `NAME-2.pdf`.
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

fn other_sizes(taken: &[&Document], wish: &Wish) -> Option<String> {
    let others: Vec<u64> =
        taken.iter().map(|d| d.bytes.0).filter(|size| !wish.bytes.contains(size)).collect();
    let (least, most) = (others.iter().min()?, others.iter().max()?);
    let right = taken.len() - others.len();
    let have = if right == 1 { "has" } else { "have" };
    Some(format!(
        "{right} of {} documents with {} pages or more {have} {}; the nearest others {}",
        taken.len(),
        wish.pages,
        range(*wish.bytes.start(), *wish.bytes.end()),
        range(*least, *most),
    ))
}

fn copies(found: usize, count: usize) -> Option<String> {
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
        let choice = choose(&found, &Wish::of_the_study(2)).unwrap();
        assert_eq!((names(&choice), choice.notes.len()), (vec!["a.pdf", "b.pdf"], 0));
        let mut other = found.clone();
        other.reverse();
        assert_eq!(
            choose(&other, &Wish::of_the_study(2)).unwrap(),
            choice,
            "in whatever order they are found"
        );
    }

    #[test]
    fn the_nearest_stand_in_and_that_is_said() {
        let found =
            [document("far.pdf", 9000, 60), document("near.pdf", 800, 60), document("right.pdf", 1100, 60)];
        let choice = choose(&found, &Wish::of_the_study(2)).unwrap();
        assert_eq!(names(&choice), ["right.pdf", "near.pdf"]);
        let note = "1 of 2 documents with 51 pages or more has 1 to 1.5 MB; the nearest others 0.8 MB";
        assert_eq!(choice.notes, [note]);
    }

    #[test]
    fn too_few_are_copied_and_that_is_said() {
        let mut twin = document("a.pdf", 1200, 60);
        twin.path = "/other/a.pdf".into();
        let found = [document("a.pdf", 1100, 60), twin, document("a-2.pdf", 1300, 60)];
        let choice = choose(&found, &Wish::of_the_study(5)).unwrap();
        assert_eq!(names(&choice), ["a-2.pdf", "a.pdf", "a-3.pdf", "a-2-2.pdf", "a-4.pdf"]);
        assert_eq!(
            choice.notes,
            ["3 different documents were found; 2 of 5 are copies of them under other names"]
        );
        assert_eq!(choice.documents[1].path, choice.documents[4].path);
    }

    #[test]
    fn without_any_it_is_said_what_there_is() {
        let error =
            choose(&[document("short.pdf", 1200, 12)], &Wish::of_the_study(2)).unwrap_err().to_string();
        assert!(
            error.starts_with("none of 1 documents has 51 pages (the longest, short.pdf, has 12); `make"),
            "{error}"
        );
        assert!(
            choose(&[], &Wish::of_the_study(2)).unwrap_err().to_string().starts_with("none of 0 documents")
        );
    }
}
