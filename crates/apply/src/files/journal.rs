//! `var/lib/eke/files.jsonl`: one JSON line a change, appended before the change happens.
//!
//! Records are only ever appended; [`keep`] drops those that are undone, and with the last one the file. The last
//! line may be torn by a crash: its change never happened.

use std::fs::File;

use serde::{Deserialize, Serialize};

use super::state::State;
use crate::sys;
use eke_linux::error::{Error, Result};
use eke_linux::root::{Root, STATE_DIR};

/// The file's name in [`STATE_DIR`].
pub const NAME: &str = "files.jsonl";

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Who undoes it.
    pub owner: String,
    /// Relative to the root, without links.
    pub path: String,
    /// Why.
    pub reason: String,
    /// What was there.
    pub old: State,
    /// What is to be there.
    pub new: State,
    /// The directories that had to be created for it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_dirs: Vec<String>,
}

/// All records of a journal's bytes; a torn last line is left out.
///
/// # Errors
/// The first whole line that is not a record, by its number.
pub fn parse(bytes: &[u8]) -> Result<Vec<Record>, String> {
    let text = std::str::from_utf8(whole_lines(bytes))
        .map_err(|e| format!("not UTF-8 at byte {}", e.valid_up_to()))?;
    let lines = text.lines().enumerate();
    lines.map(|(n, line)| serde_json::from_str(line).map_err(|e| format!("line {}: {e}", n + 1))).collect()
}

fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
    &bytes[..end]
}

fn path() -> String {
    format!("{STATE_DIR}/{NAME}")
}

fn bytes(root: &Root) -> Result<Vec<u8>> {
    match root.read_bytes(path()) {
        Err(e) if e.is_absent() => Ok(Vec::new()),
        other => other,
    }
}

/// All records; none where there is no journal.
///
/// # Errors
/// A line that is not a record, so that nothing is undone by halves.
pub fn load(root: &Root) -> Result<Vec<Record>> {
    parse(&bytes(root)?).map_err(|message| Error::Malformed {
        path: root.path(path()),
        message: format!("{message}; this is eke's record of changed files: repair or remove that line"),
    })
}

/// Appends a record in one write(2) and waits until it is on the disk.
pub fn append(root: &Root, record: &Record) -> Result<()> {
    let (dir, full) = (root.path(STATE_DIR), root.path(path()));
    sys::of(root).create_dir(&dir, 0o755).map_err(|e| Error::io("create directory", &dir, e))?;
    let there = bytes(root)?;
    if whole_lines(&there).len() < there.len() {
        sys::of(root)
            .replace(&full, whole_lines(&there), 0o600)
            .map_err(|e| Error::io("repair", &full, e))?;
    }
    sys::of(root).append(&full, line(record).as_bytes()).map_err(|e| Error::io("append to", &full, e))?;
    for synced in [&full, &dir] {
        File::open(synced).and_then(|f| f.sync_all()).map_err(|e| Error::io("sync", synced, e))?;
    }
    Ok(())
}

/// Makes the journal hold just these records; removes it where there are none.
pub fn keep(root: &Root, records: &[Record]) -> Result<()> {
    let full = root.path(path());
    if records.is_empty() {
        return match sys::of(root).remove(&full) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &full, e)),
            _ => Ok(()),
        };
    }
    let text: String = records.iter().map(line).collect();
    sys::of(root).replace(&full, text.as_bytes(), 0o600).map_err(|e| Error::io("replace", &full, e))
}

fn line(record: &Record) -> String {
    // Strings and numbers only: there is no value that JSON could not hold.
    let mut line = serde_json::to_string(record).unwrap_or_default();
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(path: &str) -> Record {
        let old = State::File { text: "a\nb".into(), mode: 0o644, owner: Some((0, 0)) };
        Record {
            owner: "o".into(),
            path: path.into(),
            reason: "r".into(),
            old,
            new: State::Absent,
            made_dirs: vec![],
        }
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_a_broken_one_is_named() {
        let two = line(&record("a")) + &line(&record("ö"));
        for cut in line(&record("a")).len()..two.len() {
            assert_eq!(parse(&two.as_bytes()[..cut]).unwrap(), [record("a")], "cut at {cut}");
        }
        let broken = format!("{}what?\n", line(&record("a")));
        assert!(parse(broken.as_bytes()).unwrap_err().starts_with("line 2: "));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_records_or_a_refusal(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }
    }
}
