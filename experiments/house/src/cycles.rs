//! Finds files of a crate that need each other.

use crate::resolve::Target;
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which file uses which, with one path as evidence.
pub type Uses = BTreeMap<PathBuf, BTreeMap<PathBuf, String>>;

/// The uses between the files of a crate. A re-export is no use, and neither is what a module takes from an enclosing
/// one: a directory's `mod.rs` contains what its files share.
pub fn uses(tree: &Tree) -> Uses {
    let mut uses = Uses::new();
    for (index, module) in tree.modules.iter().enumerate() {
        let imported = module
            .found
            .imports
            .iter()
            .filter(|import| !import.exported || module.found.names.contains(&import.name));
        let paths = imported.map(|import| &import.path).chain(&module.found.paths);
        for path in paths {
            let Some(Target::Item(target)) = tree.resolve(index, path) else { continue };
            let file = &tree.modules[target].file;
            if *file != module.file && !tree.is_within(index, target) {
                uses.entry(module.file.clone())
                    .or_default()
                    .entry(file.clone())
                    .or_insert_with(|| path.join("::"));
            }
        }
    }
    uses
}

/// Sets of two or more files that all reach each other.
pub fn cycles(uses: &Uses) -> Vec<BTreeSet<PathBuf>> {
    let reached: BTreeMap<&Path, BTreeSet<&Path>> =
        uses.keys().map(|file| (file.as_path(), reach(uses, file))).collect();
    let mut all = BTreeSet::new();
    for (file, others) in &reached {
        let circle: BTreeSet<PathBuf> = others
            .iter()
            .filter(|other| reached.get(*other).is_some_and(|back| back.contains(file)))
            .map(|other| other.to_path_buf())
            .collect();
        if circle.len() > 1 {
            all.insert(circle);
        }
    }
    all.into_iter().collect()
}

/// All files that this one needs, directly or indirectly.
fn reach<'a>(uses: &'a Uses, from: &'a Path) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for other in uses.get(file).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(other.as_path()) {
                open.push(other);
            }
        }
    }
    reached
}

/// The uses within a cycle, one per line.
pub fn describe(uses: &Uses, cycle: &BTreeSet<PathBuf>, base: &Path) -> String {
    let short = |file: &Path| file.strip_prefix(base).unwrap_or(file).display().to_string();
    let mut text = String::new();
    for file in cycle {
        for (other, path) in uses.get(file).into_iter().flatten().filter(|(other, _)| cycle.contains(*other))
        {
            text += &format!("    {} -> {}: {path}\n", short(file), short(other));
        }
    }
    text
}
