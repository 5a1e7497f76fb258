//! Where words and paths are in a text. Pure.

use std::ops::Range;

fn is_border(c: Option<char>) -> bool {
    c.is_none_or(|c| !c.is_alphanumeric())
}

/// The places of a word, with any case, and with no letter or digit beside it.
fn places(text: &str, word: &str) -> Vec<Range<usize>> {
    let all = text.char_indices().filter_map(|(at, _)| Some(at..at + length_of(&text[at..], word)?));
    let alone = |place: &Range<usize>| {
        is_border(text[..place.start].chars().next_back()) && is_border(text[place.end..].chars().next())
    };
    all.filter(alone).collect()
}

/// How long the word is at the begin of the text, in its case there.
fn length_of(text: &str, word: &str) -> Option<usize> {
    let mut rest = text.chars();
    let is_it =
        |c: char| rest.next().is_some_and(|here| here == c || here.to_lowercase().eq(c.to_lowercase()));
    (!word.is_empty() && word.chars().all(is_it)).then(|| text.len() - rest.as_str().len())
}

/// The places of a path that is not a part of another one: neither `nas:/srv` nor `/srv-of-anna` is `/srv`.
pub(super) fn places_of_path(text: &str, path: &str) -> Vec<Range<usize>> {
    let joins = |c: char| c.is_alphanumeric() || "-_+~%#@/".contains(c);
    let goes_on = |rest: &str| {
        let mut next = rest.chars();
        let first = next.next();
        first.is_some_and(joins) || (matches!(first, Some('.' | ':')) && next.next().is_some_and(joins))
    };
    let begins = |before: &str| !before.ends_with(|c: char| joins(c) || c == '.' || c == ':');
    let mut all = places(text, path);
    all.retain(|place| begins(&text[..place.start]) && !goes_on(&text[place.end..]));
    all
}

pub(super) fn has_word(text: &str, word: &str) -> bool {
    !places(text, word).is_empty()
}

pub(super) fn replace_word(text: &str, word: &str, instead: &str) -> String {
    replace_at(text, places(text, word), instead)
}

pub(super) fn replace_at(text: &str, places: Vec<Range<usize>>, instead: &str) -> String {
    let mut shown = text.to_owned();
    places.into_iter().rev().for_each(|place| shown.replace_range(place, instead));
    shown
}
