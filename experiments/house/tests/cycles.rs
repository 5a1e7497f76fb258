//! No file of a crate may need, directly or indirectly, a file that needs it. `cargo test -p eke-house -- --nocapture`
//! prints the uses that close each cycle.

use eke_house::cycles::{cycles, describe, uses};
use eke_house::tree::Tree;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Remaining cycles: the files of each, below `src`. This list only shrinks.
const ALLOWED: &[&[&str]] = &[];

/// The roots of all programs and libraries of the workspace.
fn roots(workspace: &Path) -> io::Result<Vec<PathBuf>> {
    let mut roots = Vec::new();
    for group in ["crates", "experiments"] {
        for member in fs::read_dir(workspace.join(group))?.flatten() {
            let src = member.path().join("src");
            roots.extend(
                ["lib.rs", "main.rs"].map(|name| src.join(name)).into_iter().filter(|file| file.exists()),
            );
            for file in fs::read_dir(src.join("bin")).into_iter().flatten().flatten() {
                roots.push(file.path());
            }
        }
    }
    roots.sort();
    Ok(roots)
}

fn is_allowed(cycle: &BTreeSet<String>) -> bool {
    ALLOWED.iter().any(|allowed| cycle.iter().all(|file| allowed.contains(&file.as_str())))
}

#[test]
fn files_do_not_need_each_other() {
    let workspace =
        fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).expect("the workspace");
    let (mut files, mut found, mut refused) = (0, 0, 0);
    for root in roots(&workspace).expect("the crates") {
        let tree = Tree::read(&root).expect("a crate's files");
        files += tree.files().len();
        let uses = uses(&tree);
        for cycle in cycles(&uses) {
            let base = root.parent().expect("a directory");
            let names: BTreeSet<String> = cycle
                .iter()
                .map(|file| file.strip_prefix(base).unwrap_or(file).display().to_string())
                .collect();
            found += 1;
            let allowed = is_allowed(&names);
            refused += usize::from(!allowed);
            let place = base.strip_prefix(&workspace).unwrap_or(base).display();
            println!(
                "{} cycle in {place}: {names:?}\n{}",
                if allowed { "allowed" } else { "NEW" },
                describe(&uses, &cycle, base)
            );
        }
    }
    println!("{files} files, {found} cycles");
    assert!(files > 500, "only {files} files were found");
    assert_eq!(refused, 0, "cycles between files: the uses above close them");
}
