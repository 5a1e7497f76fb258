//! Looks for documents.

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
pub const PLACES: [&str; 7] = [
    "/usr/share/doc",
    "/usr/share/R/doc",
    "/usr/share/pari/doc",
    "/usr/share/developers-reference",
    "/usr/share/texmf/doc",
    "/usr/local/share/doc",
    // Fedora and Arch keep R's below lib
    "/usr/lib64/R/doc",
];
/// No larger file is looked at: a session's viewer should not hold it, and unpacking must end.
const MOST_MIB: u64 = 16;
/// Directories below each other.
const DEEPEST: usize = 8;

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// Those that can be shown, each content once, by name.
    pub documents: Vec<Document>,
    /// Those that cannot, with the reason.
    pub unfit: Vec<(PathBuf, Unfit)>,
}

/// All PDF files below `places` ([`PLACES`]); directories that are not there hold none. Packed ones are unpacked into
/// `cache`.
pub fn find(places: &[PathBuf], cache: &Path) -> Found {
    look_at(places.iter().flat_map(|place| files(place, DEEPEST).unwrap_or_default()), cache)
}

/// The PDF files below a directory of the user's.
///
/// # Errors
/// It cannot be read, holds none, or none that can be shown.
pub fn own(place: &Path, cache: &Path) -> Result<Found> {
    let files =
        files(place, DEEPEST).map_err(|source| Error::Directory { path: place.to_owned(), source })?;
    if files.is_empty() {
        return Err(Error::NonePresent(place.to_owned()));
    }
    let found = look_at(files.into_iter(), cache);
    if found.documents.is_empty() {
        return Err(Error::NoneReadable { path: place.to_owned(), unfit: found.unfit });
    }
    Ok(found)
}

fn look_at(files: impl Iterator<Item = PathBuf>, cache: &Path) -> Found {
    let mut found = Found::default();
    // By content, so that links and packages that hold the same file count once.
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

/// The file as a document, and what tells its content from others'; `None` for one that is known.
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
    let packed = name.strip_suffix(".gz");
    let readable = match packed {
        Some(name) => unpacked(&bytes, cache, &format!("{:016x}-{name}", key.1)).map_err(unreadable)?,
        None => path.to_owned(),
    };
    let name = packed.unwrap_or(&name).to_owned();
    let size = Bytes(key.0);
    Ok(Some((key, Document { path: readable, bytes: size, pages: count(bytes)?, name })))
}

fn unreadable(error: io::Error) -> Unfit {
    Unfit::Unreadable(error.to_string())
}

/// A file's bytes, unpacked.
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

/// Equal contents have equal ones.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Writes the bytes to the cache under a name that belongs to them; whole or not at all.
fn unpacked(bytes: &[u8], cache: &Path, name: &str) -> io::Result<PathBuf> {
    let path = cache.join(name);
    if path.metadata().is_ok_and(|meta| meta.len() == bytes.len() as u64) {
        return Ok(path);
    }
    eke_bench_core::cache::make(cache)?;
    let half = cache.join(format!(".{name}.{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&half)?;
    let written = file.write_all(bytes).and_then(|()| std::fs::rename(&half, &path));
    written.inspect_err(|_| drop(std::fs::remove_file(&half)))?;
    Ok(path)
}

/// The PDF files below a directory, by path. Links to files are followed, links to directories are not: they may lead
/// anywhere.
fn files(place: &Path, deepest: usize) -> io::Result<Vec<PathBuf>> {
    let mut entries = std::fs::read_dir(place)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut all = Vec::new();
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            // What may not be read or is gone by now holds nothing.
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
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn place() -> tempfile::TempDir {
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
    fn each_content_once_and_packed_ones_unpacked() {
        let dir = place();
        let cache = dir.path().join("cache");
        let found = find(&[dir.path().join("doc"), dir.path().join("none")], &cache);
        let seen: Vec<_> = found.documents.iter().map(|d| (d.name.as_str(), d.pages)).collect();
        assert_eq!(seen, [("four.pdf", 4), ("two.pdf", 2)]);
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
        let error = |place: &Path| own(place, &dir.path().join("cache")).unwrap_err().to_string();
        assert_eq!(error(dir.path()), format!("no PDF file (*.pdf, *.pdf.gz) is below {at}"));
        assert!(error(&dir.path().join("none")).starts_with(&format!("cannot read {at}/none: No such file")));
        put(&dir.path().join("x/cut.pdf"), &pdf(9, "")[..40]);
        put(&dir.path().join("x/text.pdf"), b"text");
        let expected =
            format!("no document below {at} can be shown: cut.pdf is a damaged PDF; text.pdf is not a PDF");
        assert_eq!(error(dir.path()), expected);
    }
}
