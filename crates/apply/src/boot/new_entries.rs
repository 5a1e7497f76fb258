//! Loader entries that a kernel upgrade wrote since, with the words of the entry or command line before: the journal does not know them.

use super::detect::ESPS;
use super::{OWNER, entries};
use crate::files::journal::{self, Record};
use crate::files::state::{self, State};
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// How the reason of a record begins; the words follow.
pub(super) const REASON: &str = "zswap from boot on: ";

/// Before the undo: takes eke's words out of entries and of `/etc/kernel/cmdline`, where the journal does not know the file, and forgets entries that are
/// gone. Returns the changed files. The caller holds the lock of files.
///
/// # Errors
/// A file that cannot be read or written. One that eke cannot parse is left alone.
pub(super) fn clean(root: &Root) -> Result<Vec<String>> {
    let all = journal::load(root)?;
    let ours = words(&all);
    if ours.is_empty() {
        return Ok(Vec::new());
    }
    // A kernel's removal took it: a file system that is not mounted was refused before.
    let is_gone = |r: &Record| r.owner == OWNER && is_entry(&r.path) && !root.exists(&r.path);
    let kept: Vec<Record> = all.iter().filter(|r| !is_gone(r)).cloned().collect();
    let mut cleaned = Vec::new();
    for path in candidates(root)? {
        if !all.iter().any(|r| r.path == path) && clean_file(root, &path, &ours)? {
            cleaned.push(path);
        }
    }
    // At the end: an interrupted call finds its words again.
    if kept.len() < all.len() {
        journal::keep(root, &kept)?;
    }
    Ok(cleaned)
}

/// What eke wrote, time by time, without the words that the user had before.
fn words(all: &[Record]) -> Vec<Vec<String>> {
    let mine = || all.iter().filter(|r| r.owner == OWNER);
    // Later records of a file have eke's own words.
    let is_first =
        |r: &Record| mine().find(|first| first.path == r.path).is_some_and(|first| std::ptr::eq(first, r));
    let had = |r: &Record, word: &str| matches!(&r.old, State::File { text, .. } if has(text, word));
    let of_user = |word: &str| mine().any(|r| is_first(r) && had(r, word));
    let mut times: Vec<Vec<String>> = mine()
        .filter_map(|r| r.reason.strip_prefix(REASON))
        .map(|words| split(words).filter(|word| !of_user(word)).collect())
        .filter(|words: &Vec<String>| !words.is_empty())
        .collect();
    // The longest first: a shorter one may be a part of it.
    times.sort_by_key(|words| std::cmp::Reverse(words.len()));
    times.dedup();
    times
}

fn split(words: &str) -> impl Iterator<Item = String> {
    words.split_whitespace().map(str::to_owned)
}

fn has(text: &str, word: &str) -> bool {
    text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).any(|there| there == word)
}

/// A loader entry on an EFI system partition.
pub(super) fn is_entry(path: &str) -> bool {
    ESPS.iter().any(|esp| path.starts_with(&format!("{esp}/loader/entries/")))
}

fn candidates(root: &Root) -> Result<Vec<String>> {
    let mut paths = vec![entries::KERNEL_CMDLINE.to_owned()];
    for esp in ESPS {
        let dir = format!("{esp}/loader/entries");
        let names = root.list(&dir)?.into_iter().filter(|name| name.ends_with(".conf"));
        paths.extend(names.map(|name| format!("{dir}/{name}")));
    }
    Ok(paths)
}

/// A kernel's installation copies all words. Where only some are, they are the user's.
fn clean_file(root: &Root, path: &str, ours: &[Vec<String>]) -> Result<bool> {
    let (text, mode, owner) = match state::observe(root, path) {
        Ok(State::File { text, mode, owner }) => (text, mode, owner),
        Ok(State::Absent | State::Symlink { .. }) | Err(Error::Refused(_)) => return Ok(false),
        Err(e) => return Err(e),
    };
    let Some(words) = ours.iter().find(|words| words.iter().all(|word| has(&text, word))) else {
        return Ok(false);
    };
    let without = if is_entry(path) { entries::without_words } else { entries::cmdline_without_words };
    match without(&text, words) {
        Ok(rest) if rest != text => {
            state::put(root, path, &State::File { text: rest, mode, owner })?;
            Ok(true)
        }
        Ok(_) | Err(_) => Ok(false),
    }
}
