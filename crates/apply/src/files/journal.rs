//! `var/lib/eke/files.jsonl`: one JSON line for each change, appended before the change.
//!
//! Records are only appended; [`keep`] drops undone ones, and the file with the last one. A crash may leave a partial
//! last line; its change never happened.

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
    /// The feature that made the change and undoes it.
    pub owner: String,
    /// Relative to the root, without links.
    pub path: String,
    /// Why.
    pub reason: String,
    /// The state before.
    pub old: State,
    /// The state after.
    pub new: State,
    /// Directories created for it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_dirs: Vec<String>,
}

/// All records in a journal's bytes, without a partial last line.
///
/// # Errors
/// The number of the first complete line that is not a record.
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

/// All records; none without a journal.
///
/// # Errors
/// A line that is not a record: then nothing is undone, rather than a part.
pub fn load(root: &Root) -> Result<Vec<Record>> {
    parse(&bytes(root)?).map_err(|message| Error::Malformed {
        path: root.path(path()),
        message: format!("{message}; this is eke's record of changed files: repair or remove that line"),
    })
}

/// Appends a record in one write(2), and syncs it.
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
        sys::of(root).sync(synced).map_err(|e| Error::io("sync", synced, e))?;
    }
    Ok(())
}

/// Replaces the journal by these records; removes it if there are none.
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
    // Serializing strings and numbers cannot fail.
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
    fn a_partial_last_line_is_skipped_and_a_broken_one_is_named() {
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
