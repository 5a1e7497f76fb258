//! Finds test programs for file systems, and parses their output.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// `scripts/setup test` installs them here.
pub fn directory() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_default().join("eke-tools/bin")
}

/// The path of one of them, or why it cannot be run.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let path = directory().join(name);
    let lacking = format!("no {} (scripts/setup test installs it)", path.display());
    if path.exists() {
        return Ok(path);
    }
    assert!(std::env::var("EKE_TESTS").as_deref() != Ok("require"), "a required test cannot run: {lacking}");
    Err(lacking)
}

/// How one of pjdfstest's tests ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Passed,
    /// With the reason.
    Skipped(String),
    /// With its message.
    Failed(String),
}

/// Parses the output of pjdfstest 0.2: a line with a name and a result for each test, followed by the lines of its message.
pub fn ends(output: &str) -> BTreeMap<String, End> {
    let mut ends = BTreeMap::new();
    let mut last: Option<String> = None;
    for line in output.lines() {
        let end = match line.split_whitespace().collect::<Vec<_>>()[..] {
            [name, "ok"] => (name, End::Passed),
            [name, "skipped"] => (name, End::Skipped(String::new())),
            [name, "FAILED"] => (name, End::Failed(String::new())),
            _ => {
                if let Some(End::Skipped(why) | End::Failed(why)) =
                    last.as_ref().and_then(|l| ends.get_mut(l))
                {
                    *why = format!("{why} {}", line.trim()).trim().to_owned();
                }
                continue;
            }
        };
        last = Some(end.0.to_owned());
        ends.insert(end.0.to_owned(), end.1);
    }
    ends
}

/// A field of the line with this name, in `/etc/passwd` or `/etc/group`.
pub fn field(lines: &str, name: &str, field: usize) -> Option<String> {
    lines.lines().find(|l| l.split(':').next() == Some(name))?.split(':').nth(field).map(str::to_owned)
}

/// The name of the line with this field.
pub fn with_field(lines: &str, field: usize, value: &str) -> Option<String> {
    lines.lines().find(|l| l.split(':').nth(field) == Some(value))?.split(':').next().map(str::to_owned)
}
