//! Finds documents.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs::{File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use eke_model::units::{Bytes, MIB};
use flate2::read::MultiGzDecoder;

use super::Document;
use super::error::{Error, Result};
use super::pages::{Unfit, count};

/// Where distributions put documentation with PDF files.
pub const DIRECTORIES: [&str; 7] = [
    "/usr/share/doc",
    "/usr/share/R/doc",
    "/usr/share/pari/doc",
    "/usr/share/developers-reference",
    "/usr/share/texmf/doc",
    "/usr/local/share/doc",
    // Fedora and Arch keep R's documentation below lib.
    "/usr/lib64/R/doc",
];
/// The largest file that counts, decompressed, in MiB: a session's viewer should not need more, and decompression must end.
const MOST_MIB: u64 = 16;
/// The deepest nesting of directories.
const DEEPEST: usize = 8;

/// The files that were found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// Documents that can be shown, by name. Each content appears once.
    pub documents: Vec<Document>,
    /// Files that cannot be shown, with the reason.
    pub unfit: Vec<(PathBuf, Unfit)>,
}

/// All PDF files below `directories` ([`DIRECTORIES`]). Missing directories count as empty. Decompresses compressed files into
/// `cache`.
pub fn find(directories: &[PathBuf], cache: &Path) -> Found {
    read_all(directories.iter().flat_map(|dir| files(dir, DEEPEST).unwrap_or_default()), cache)
}

/// The PDF files below a directory of the user.
///
/// # Errors
/// The directory cannot be read, has no PDF file, or none that can be shown.
pub fn own(directory: &Path, cache: &Path) -> Result<Found> {
    let files = files(directory, DEEPEST)
        .map_err(|source| Error::Directory { path: directory.to_owned(), source })?;
    if files.is_empty() {
        return Err(Error::NonePresent(directory.to_owned()));
    }
    let found = read_all(files.into_iter(), cache);
    if found.documents.is_empty() {
        return Err(Error::NoneReadable { path: directory.to_owned(), unfit: found.unfit });
    }
    Ok(found)
}

fn read_all(files: impl Iterator<Item = PathBuf>, cache: &Path) -> Found {
    let mut found = Found::default();
    // By content, so that links and equal files of several packages count once.
    let mut by_content: BTreeMap<(u64, u64), Document> = BTreeMap::new();
    for path in files {
        match document(&path, cache, |key| by_content.contains_key(&key)) {
            Ok(Some((key, document))) => drop(by_content.insert(key, document)),
            Ok(None) => {}
            Err(unfit) => found.unfit.push((path, unfit)),
        }
    }
    found.documents = by_content.into_values().collect();
    found.documents.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
    found
}

type Key = (u64, u64);

/// The file as a document with the key of its content; `None` if the content is known.
fn document(
    path: &Path,
    cache: &Path,
    known: impl Fn(Key) -> bool,
) -> std::result::Result<Option<(Key, Document)>, Unfit> {
    let bytes = read(path)?;
    let key = (bytes.len() as u64, hash(&bytes));
    if known(key) {
        return Ok(None);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let compressed = name.strip_suffix(".gz");
    let readable = match compressed {
        Some(name) => store(&bytes, cache, &format!("{:016x}-{name}", key.1)).map_err(unreadable)?,
        None => path.to_owned(),
    };
    let name = compressed.unwrap_or(&name).to_owned();
    let size = Bytes(key.0);
    Ok(Some((key, Document { path: readable, bytes: size, pages: count(bytes)?, name })))
}

fn unreadable(error: io::Error) -> Unfit {
    Unfit::Unreadable(error.to_string())
}

/// A file's bytes, decompressed.
fn read(path: &Path) -> std::result::Result<Vec<u8>, Unfit> {
    let file = File::open(path).map_err(unreadable)?;
    let most = MOST_MIB * MIB;
    let mut bytes = Vec::new();
    let read = if path.extension().is_some_and(|e| e == "gz") {
        MultiGzDecoder::new(file).take(most + 1).read_to_end(&mut bytes)
    } else {
        file.take(most + 1).read_to_end(&mut bytes)
    };
    match read.map_err(unreadable)? as u64 > most {
        true => Err(Unfit::TooLarge(MOST_MIB)),
        false => Ok(bytes),
    }
}

/// A hash of the content.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Writes the bytes to the cache under a name derived from them, completely or not at all.
fn store(bytes: &[u8], cache: &Path, name: &str) -> io::Result<PathBuf> {
    let path = cache.join(name);
    if path.metadata().is_ok_and(|meta| meta.len() == bytes.len() as u64) {
        return Ok(path);
    }
    eke_bench_core::cache::make(cache)?;
    let temporary = cache.join(format!(".{name}.{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
    let written = file.write_all(bytes).and_then(|()| std::fs::rename(&temporary, &path));
    written.inspect_err(|_| drop(std::fs::remove_file(&temporary)))?;
    Ok(path)
}

/// The PDF files below a directory, by path. Follows links to files, but not links to directories: they may lead anywhere.
fn files(directory: &Path, deepest: usize) -> io::Result<Vec<PathBuf>> {
    let mut entries = std::fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut all = Vec::new();
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            // A directory that is unreadable or gone by now counts as empty.
            all.extend(if deepest > 0 { files(&path, deepest - 1).or_else(forgive)? } else { Vec::new() });
        } else if is_pdf(&path) && path.is_file() {
            all.push(path);
        }
    }
    Ok(all)
}

fn forgive(error: io::Error) -> io::Result<Vec<PathBuf>> {
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::NotFound => Ok(Vec::new()),
        _ => Err(error),
    }
}

fn is_pdf(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    name.ends_with(".pdf") || name.ends_with(".pdf.gz")
}

#[cfg(test)]
mod tests {
    use super::super::pages::tests::pdf;
    use super::*;
    use std::os::unix::fs::symlink;

    fn put(path: &Path, bytes: &[u8]) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        OpenOptions::new().write(true).create_new(true).open(path).unwrap().write_all(bytes).unwrap();
    }

    fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn documentation() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join("doc").join(name);
        put(&at("a/two.pdf"), &pdf(2, ""));
        put(&at("b/same.pdf"), &pdf(2, ""));
        put(&at("b/three.PDF.gz"), b"not gzip");
        put(&at("b/four.pdf.gz"), &gz(&pdf(4, "")));
        put(&at("b/no.pdf"), b"nothing");
        put(&at("b/readme.txt"), &pdf(9, ""));
        symlink("a/two.pdf", at("link.pdf")).unwrap();
        symlink("..", at("b/up")).unwrap();
        symlink("gone.pdf", at("b/void.pdf")).unwrap();
        dir
    }

    #[test]
    fn each_content_counts_once_and_compressed_ones_are_decompressed() {
        let dir = documentation();
        let cache = dir.path().join("cache");
        let found = find(&[dir.path().join("doc"), dir.path().join("none")], &cache);
        let documents: Vec<_> = found.documents.iter().map(|d| (d.name.as_str(), d.pages)).collect();
        assert_eq!(documents, [("four.pdf", 4), ("two.pdf", 2)]);
        let four = &found.documents[0];
        assert_eq!(four.bytes.0, pdf(4, "").len() as u64);
        assert!(four.path.starts_with(&cache) && std::fs::read(&four.path).unwrap() == pdf(4, ""));
        let unfit: Vec<_> = found
            .unfit
            .iter()
            .map(|(path, why)| (path.file_name().unwrap().to_str().unwrap(), why))
            .collect();
        assert_eq!(unfit[0], ("no.pdf", &Unfit::NotPdf));
        assert!(matches!(unfit[1], ("three.PDF.gz", Unfit::Unreadable(_))), "{unfit:?}");
        assert_eq!(find(&[dir.path().join("doc")], &cache), found, "the second time from the cache");
        assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_without_documents_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().display().to_string();
        let error = |directory: &Path| own(directory, &dir.path().join("cache")).unwrap_err().to_string();
        assert_eq!(error(dir.path()), format!("no PDF file (*.pdf, *.pdf.gz) is below {at}"));
        assert!(error(&dir.path().join("none")).starts_with(&format!("cannot read {at}/none: No such file")));
        put(&dir.path().join("x/cut.pdf"), &pdf(9, "")[..40]);
        put(&dir.path().join("x/text.pdf"), b"text");
        let expected =
            format!("no document below {at} can be shown: cut.pdf is a damaged PDF; text.pdf is not a PDF");
        assert_eq!(error(dir.path()), expected);
    }
}
