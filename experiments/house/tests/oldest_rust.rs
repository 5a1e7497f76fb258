//! The packages are built by the oldest Rust that the workspace names, which CI has not.

use std::path::{Path, PathBuf};
use std::{fs, io};

use eke_house::newer::let_chains;

fn sources(dir: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

#[test]
fn no_file_has_syntax_that_it_does_not_know() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for group in ["crates", "experiments"] {
        sources(&workspace.join(group), &mut files).expect("the sources");
    }
    assert!(files.len() > 1000, "only {} files were found", files.len());
    let mut chains = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        let lines = let_chains(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        chains.extend(lines.into_iter().map(|line| format!("{}:{line}", file.display())));
    }
    assert!(chains.is_empty(), "`let` chains need Rust 1.88; nest these: {chains:#?}");
}
