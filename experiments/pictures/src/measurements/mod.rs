//! The numbers in README.md and docs/*.md: each comes from a stored result, or `docs/measurements.toml` says what else it is.
//!
//! - [`blocks`]: parts of a page that are written whole: [`commits`], the list of results with their commits; `grid` and `hot`, tables
//! - [`claims`]: the file `docs/measurements.toml`
//! - [`value`]: a value in the stored results
//! - [`passage`]: a passage with numbers
//! - [`page`]: numbers in the text of a page

pub mod blocks;
pub mod claims;
pub mod commits;
mod grid;
mod hot;
pub mod page;
mod passage;
pub mod value;

use std::path::Path;

use anyhow::{Context, Result};
use claims::Claims;

/// Pages that a program writes whole.
const GENERATED: [&str; 3] = ["docs/field.md", "docs/knobs.md", "docs/metrics.md"];

/// One page, as it is and as the stored results have it.
#[derive(Debug)]
pub struct Checked {
    /// Its path in the repository.
    pub page: String,
    /// Its text.
    pub text: String,
    /// The same with the values of the stored results.
    pub right: String,
    /// What is wrong that no value mends: numbers that nobody accounts for, claims that the page does not have.
    pub faults: Vec<String>,
}

/// Checks each page of the repository.
///
/// # Errors
/// A page or a result cannot be read, or a claim names what no result has.
pub fn check(repository: &Path) -> Result<Vec<Checked>> {
    let read = |name: &str| {
        let file = repository.join(name);
        std::fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))
    };
    let claims = claims(repository)?;
    let directory = repository.join("docs/results");
    let mut results = value::Results::new(directory.clone());
    let pages = pages(repository)?;
    claims.pages().try_for_each(|page| {
        pages
            .contains(page)
            .then_some(())
            .with_context(|| format!("docs/measurements.toml: there is no page {page}"))
    })?;
    let check = |page: String| {
        let text = read(&page)?;
        let parts = blocks::split(&text, &directory).with_context(|| page.clone())?;
        let (outline, faults) = page::checked(&parts.outline, &claims.of(&page), &mut results)?;
        Ok(Checked { page, text, right: parts.joined(&outline), faults })
    };
    pages.into_iter().map(check).collect()
}

/// What `docs/measurements.toml` says.
///
/// # Errors
/// It cannot be read.
pub fn claims(repository: &Path) -> Result<Claims> {
    let text = std::fs::read_to_string(repository.join("docs/measurements.toml"));
    toml::from_str(&text.context("docs/measurements.toml cannot be read")?).context("docs/measurements.toml")
}

fn pages(repository: &Path) -> Result<Vec<String>> {
    let mut pages = vec!["README.md".to_owned(), "docs/results/README.md".to_owned()];
    for entry in std::fs::read_dir(repository.join("docs")).context("docs cannot be listed")? {
        let name = format!("docs/{}", entry?.file_name().to_string_lossy());
        let is_page = Path::new(&name).extension().is_some_and(|end| end == "md");
        pages.extend(Some(name).filter(|name| is_page && !GENERATED.contains(&name.as_str())));
    }
    pages.sort();
    Ok(pages)
}
