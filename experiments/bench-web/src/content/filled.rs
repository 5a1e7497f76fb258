//! Content that compresses by a chosen ratio, as an image for one use.

use std::hash::Hasher;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eke_bench_core::Environment;
use eke_bench_core::fault::on;
use eke_bench_core::test_image::Scratch;
use eke_sandbox::stressor::page::Recipe;
use twox_hash::XxHash64;

use super::classes::FileSpec;
use super::image::{Content, FileSystem, Properties};
use super::ratio::Meter;
use super::{cached, make};
use crate::error::{Error, Result};

/// The bytes of a generated page.
const PAGE: u64 = 4096;
/// Pages are written so many at once.
const AT_ONCE: u64 = 256;

/// A content and its ext4 image, which goes when it is dropped.
#[derive(Debug)]
pub struct Filled {
    /// The content.
    pub content: Arc<Content>,
    _directory: Scratch,
}

/// Makes `files` and fills them with bytes that compress `ratio` to 1, the same each time.
///
/// # Errors
/// There is no space, the ratio is impossible, mke2fs fails, the kernel refuses, or a signal came.
pub fn make(environment: &Environment<'_>, files: Vec<FileSpec>, ratio: f64) -> Result<Filled> {
    let recipe = Recipe::new(1, ratio).map_err(Error::Usage)?;
    let cache = &environment.cache.join("web");
    eke_bench_core::cache::make(cache).map_err(on("use the cache", cache))?;
    eke_bench_core::test_image::sweep_dir(environment.root, cache)?;
    let directory = Scratch::directory(environment.root, cache)?;
    let stem: PathBuf = directory.path().join("content");
    let mut content = Content { files, properties: Properties::default(), stem };
    cached::check_space(cache, &content.files, &[FileSystem::Ext4])?;
    let (mut meter, mut hashes, mut page) = (Meter::default(), Vec::new(), 0);
    make::ext4(environment, &content, |spec, path, out| {
        let hash = fill(&recipe, &mut page, spec.bytes, out, &mut meter).map_err(on("write", path))?;
        hashes.push(hash);
        Ok(())
    })?;
    let corpus = format!("generated pages of text and noise that compress {ratio} to 1");
    content.properties = Properties { ratio: meter.ratio(), hashes, corpus };
    Ok(Filled { content: Arc::new(content), _directory: directory })
}

/// Writes `bytes` bytes from page number `page` on. Returns their hash (XXH64, seed 0).
fn fill(
    recipe: &Recipe,
    page: &mut u64,
    bytes: u64,
    out: &mut impl Write,
    meter: &mut Meter,
) -> io::Result<u64> {
    let (mut hash, mut left, mut buffer) = (XxHash64::with_seed(0), bytes, Vec::new());
    while left > 0 {
        buffer.clear();
        for _ in 0..left.div_ceil(PAGE).min(AT_ONCE) {
            buffer.extend_from_slice(&recipe.page(*page).bytes());
            *page += 1;
        }
        buffer.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left -= buffer.len() as u64;
        hash.write(&buffer);
        meter.add(&buffer);
        out.write_all(&buffer)?;
    }
    meter.end_of_file();
    Ok(hash.finish())
}

/// The files of these sizes, in directories of 256.
pub fn specs(sizes: &[u64]) -> Vec<FileSpec> {
    let path = |n: usize| Path::new(&format!("d{:04}", n / 256)).join(format!("f{n:06}"));
    let spec =
        |(n, bytes): (usize, &u64)| FileSpec { path: path(n).to_string_lossy().into_owned(), bytes: *bytes };
    sizes.iter().enumerate().map(spec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_compress_as_asked_and_are_the_same_each_time() {
        for ratio in [1.3, 1.9, 2.5] {
            let recipe = Recipe::new(1, ratio).unwrap();
            let filled = |first: u64| {
                let (mut page, mut out, mut meter) = (first, Vec::new(), Meter::default());
                let hash = fill(&recipe, &mut page, 3_000_001, &mut out, &mut meter).unwrap();
                assert_eq!((out.len(), page), (3_000_001, first + 733));
                (hash, meter.ratio())
            };
            assert_eq!(filled(0), filled(0));
            assert_ne!(filled(0).0, filled(1).0);
            assert!((filled(0).1 / ratio - 1.0).abs() < 0.1, "{} for {ratio}", filled(0).1);
        }
        let specs = specs(&[5, 6]);
        assert_eq!((specs[1].path.as_str(), specs[1].bytes), ("d0000/f000001", 6));
    }
}
