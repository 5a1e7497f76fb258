//! Finds and reads the documents.

use std::path::{Path, PathBuf};

use super::pages::{self, File};

/// Where distributions put documentation.
pub const USUAL: [&str; 3] = ["/usr/share/doc", "/usr/share/R/doc", "/usr/lib/R/doc"];

/// The pages of an experiment, one for each tab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// The page of each tab, as HTML.
    pub pages: Vec<String>,
    /// The files of each tab's page; shorter than `pages` if the last pages are generated.
    pub sources: Vec<Vec<PathBuf>>,
    /// Notes for the reader of a report.
    pub notes: Vec<String>,
}

/// Pages for `tabs` tabs from the HTML files below `directories`, each with about `weight` bytes of a document. Generates
/// missing pages; a note reports how many. Does not follow links to directories.
pub fn gather(directories: &[PathBuf], tabs: usize, weight: usize) -> Documents {
    let mut files = Vec::new();
    directories.iter().for_each(|dir| find(dir, &mut files));
    let sources = pages::share_out(files, tabs, weight as u64);
    let mut notes = Vec::new();
    if sources.len() < tabs {
        notes.push(format!(
            "{} of {tabs} tabs show generated text: {} {weight} bytes of HTML for each; install more, e.g. debian-policy, bash-doc, octave-doc, zsh-doc",
            tabs - sources.len(),
            if directories.is_empty() { "no directory was given with" } else { "the documents found do not have" },
        ));
    }
    let pages = (0..tabs).map(|tab| page(tab, sources.get(tab), weight)).collect();
    Documents { pages, sources, notes }
}

fn page(tab: usize, files: Option<&Vec<PathBuf>>, weight: usize) -> String {
    let Some(files) = files else {
        return pages::page(tab, &format!("Generated text {tab}"), &pages::generated(tab, weight));
    };
    let title = files.first().map(|f| f.display().to_string()).unwrap_or_default();
    let mut document = String::new();
    for file in files {
        let text = std::fs::read(file).unwrap_or_default();
        document += pages::body(&String::from_utf8_lossy(&text));
    }
    pages::page(tab, &title, pages::cut(&document, weight))
}

fn find(directory: &Path, files: &mut Vec<File>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        if kind.is_dir() {
            find(&path, files);
        } else if kind.is_file() && path.extension().is_some_and(|e| e == "html" || e == "htm") {
            let size = entry.metadata().map_or(0, |m| m.len());
            files.push(File { path, size });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of the test's own")]
    fn documents_are_read_and_missing_ones_are_generated_and_noted() {
        let dir = tempfile::tempdir().unwrap();
        let html = format!("<html><body>{}</body></html>", "<p>hello world</p>".repeat(400));
        std::fs::write(dir.path().join("a.html"), &html).unwrap();
        std::fs::write(dir.path().join("b.txt"), &html).unwrap();
        let found = gather(&[dir.path().to_owned()], 2, 5_000);
        assert_eq!(found.sources, [vec![dir.path().join("a.html")]]);
        assert!(found.pages[0].contains("hello world") && found.pages[0].len() < 7_000);
        assert!(found.pages[1].contains("Generated text 1") && found.notes[0].starts_with("1 of 2 tabs"));
        assert_eq!(gather(&[dir.path().join("absent")], 1, 100).sources.len(), 0);
    }
}
