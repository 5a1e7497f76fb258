//! A plain table: the first column to the left, the others to the right, words at the end to the left again.

use std::fmt;

use eke_model::text::one_line;

use crate::words::cut;

/// Longer cells are cut: Rust's widths have 16 bits, and a foreign name must not fill the screen.
const LONGEST: usize = 4096;

/// Rows of cells under a header.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    words_at: Option<usize>,
}

impl Table {
    /// With this header.
    pub fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|c| (*c).to_owned()).collect()], words_at: None }
    }

    /// The last column holds words.
    #[must_use]
    pub fn ending_in_words(mut self) -> Self {
        self.words_at = self.rows.first().map(|header| header.len() - 1);
        self
    }

    /// Appends a row. Cells may be foreign: a name has no lines here.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| cut(&one_line(&cell), LONGEST)).collect());
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |i: usize| {
            self.rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0)
        };
        (0..columns).map(width).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let mut line = String::new();
            for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let cell = if i == 0 || self.words_at == Some(i) {
                    format!("  {cell:<width$}")
                } else {
                    format!("  {cell:>width$}")
                };
                line += &cell;
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_of_any_length_is_printed() {
        let mut table = Table::new(&["a", "b"]);
        table.row(["x".repeat(70_000), "\u{e9}".repeat(70_000)]);
        let text = table.to_string();
        let line = text.lines().nth(1).unwrap();
        assert!(line.ends_with("\u{e9}…") && line.chars().count() < 2 * (LONGEST + 10), "{}", line.len());
    }
}
