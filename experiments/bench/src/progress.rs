//! How far an experiment is. The experiment tells; the caller shows it, or not.

/// Whoever shows it.
pub trait Progress {
    /// So many runs will be made in all; said again when that changes.
    fn planned(&self, runs: usize);
    /// One of them begins: `eke, 2 of 3`.
    fn begins(&self, run: &str);
    /// What it does just now: `page 31 of document 2`.
    fn doing(&self, what: &str);
    /// It is over.
    fn done(&self);
    /// A line that stays.
    fn say(&self, line: &str);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn planned(&self, _runs: usize) {}
    fn begins(&self, _run: &str) {}
    fn doing(&self, _what: &str) {}
    fn done(&self) {}
    fn say(&self, _line: &str) {}
}
