//! Parts of a page that `make docs` writes whole, between two comments. The first one says what: `<!-- make docs: NAME -->`.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{commits, grid, hot};

const BEGIN: &str = "<!-- make docs: ";
const END: &str = "<!-- end -->\n";

/// A page without its blocks, and these as the stored results have them.
#[derive(Debug)]
pub struct Page {
    /// The text; of each block only the two comments.
    pub outline: String,
    blocks: Vec<String>,
}

/// Takes the blocks out of a text.
///
/// # Errors
/// A block has no end or an unknown name, or its result cannot be read.
pub fn split(text: &str, results: &Path) -> Result<Page> {
    let (mut outline, mut blocks, mut rest) = (String::new(), Vec::new(), text);
    while let Some((before, from)) = rest.split_once(BEGIN) {
        let (name, after) = from.split_once(" -->\n").context("a comment of a block has no end")?;
        let (_, after) = after.split_once(END).with_context(|| format!("the block \"{name}\" has no end"))?;
        outline += &format!("{before}{BEGIN}{name} -->\n{END}");
        blocks.push(content(name, results)?);
        rest = after;
    }
    Ok(Page { outline: outline + rest, blocks })
}

impl Page {
    /// The text with its blocks, from its outline, which may have changed elsewhere.
    pub fn joined(&self, outline: &str) -> String {
        let mut parts = outline.split(END);
        let first = parts.next().unwrap_or_default().to_owned();
        let blocks = self.blocks.iter().zip(parts);
        blocks.fold(first, |text, (block, part)| text + block + END + part)
    }
}

fn content(name: &str, results: &Path) -> Result<String> {
    match name {
        "results with a commit" => commits::list(results),
        "cells of the grid" => grid::cells(results),
        "hot keys of a farm" => hot::keys(results),
        _ => bail!("there is no block \"{name}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_replaced_and_the_text_around_it_stays() {
        // Sources are no results, so the list is empty.
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let text = format!("a\n{BEGIN}results with a commit -->\n- old 1\n{END}b 2\n");
        let page = split(&text, &dir).unwrap();
        assert_eq!(page.outline, format!("a\n{BEGIN}results with a commit -->\n{END}b 2\n"));
        let right = page.joined(&page.outline.replace("b 2", "b 3"));
        assert_eq!(right, format!("a\n{BEGIN}results with a commit -->\n{END}b 3\n"));
        assert!(split(&text.replace("results", "other"), &dir).is_err());
        assert!(split(&text.replace(END, ""), &dir).is_err());
    }
}
