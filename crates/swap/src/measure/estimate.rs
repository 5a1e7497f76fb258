//! Estimates an algorithm with a library in user space: those that only zswap offers, or all if no zram device can be made. The results are marked as
//! estimates.

use std::time::Instant;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::buffer::Buffer;
use super::measurements::AlgorithmMeasurement;
use super::ratio::{self, Checkpoint, Ratio};
use super::sampler::Sample;
use super::variants;
use super::zram::{p50_p99, since_ns};
use crate::error::Result;

/// The most pages of one estimate.
const PAGES: usize = 1024;
/// Pages that show its speed.
const PILOT: usize = 16;
const BATCHES: usize = 8;
/// Memory per byte of data in zsmalloc, if not measured: sizes are rounded up to classes 16 bytes apart, and objects leave a rest in their group.
/// Measured on Linux 6.18 with 4 KiB pages: 1.02 to 1.03.
const USUAL_OVERHEAD: f64 = 1.03;
/// An object larger than this share of a page gets a whole page (`huge_class_size` of zsmalloc.c: 3,264 of 4,096 bytes).
const WHOLE_PAGE_FROM: f64 = 3264.0 / 4096.0;

/// Compresses and decompresses one page.
trait Codec {
    /// The compressed size; `None` if it does not fit into `out`.
    fn compress(&mut self, page: &[u8], out: &mut [u8]) -> Option<usize>;
    /// Decompresses; was the result a full page?
    fn decompress(&mut self, data: &[u8], page: &mut [u8]) -> bool;
}

/// `crypto/deflate.c`: raw, level 6, a window of 2 KiB (its memory level 9 is 8 here, which a page does not show).
struct Deflate {
    compress: Compress,
    decompress: Decompress,
}

impl Codec for Deflate {
    fn compress(&mut self, page: &[u8], out: &mut [u8]) -> Option<usize> {
        self.compress.reset();
        let ended = self.compress.compress(page, out, FlushCompress::Finish).ok()? == Status::StreamEnd;
        ended.then(|| self.compress.total_out() as usize)
    }

    fn decompress(&mut self, data: &[u8], page: &mut [u8]) -> bool {
        self.decompress.reset(false);
        self.decompress.decompress(data, page, FlushDecompress::Finish).is_ok()
            && self.decompress.total_out() as usize == page.len()
    }
}

/// `crypto/zstd.c`: level 3.
struct Zstd {
    compress: zstd::bulk::Compressor<'static>,
    decompress: zstd::bulk::Decompressor<'static>,
}

impl Codec for Zstd {
    fn compress(&mut self, page: &[u8], out: &mut [u8]) -> Option<usize> {
        self.compress.compress_to_buffer(page, out).ok()
    }

    fn decompress(&mut self, data: &[u8], page: &mut [u8]) -> bool {
        self.decompress.decompress_to_buffer(data, page).is_ok_and(|n| n == page.len())
    }
}

struct Lz4;

impl Codec for Lz4 {
    fn compress(&mut self, page: &[u8], out: &mut [u8]) -> Option<usize> {
        lz4_flex::block::compress_into(page, out).ok()
    }

    fn decompress(&mut self, data: &[u8], page: &mut [u8]) -> bool {
        lz4_flex::block::decompress_into(data, page).is_ok_and(|n| n == page.len())
    }
}

/// The codec that stands for a kernel algorithm, or why there is none.
fn codec(name: &str) -> Result<Box<dyn Codec>, String> {
    match name {
        "deflate" => Ok(Box::new(Deflate {
            compress: Compress::new_with_window_bits(Compression::default(), false, 11),
            decompress: Decompress::new_with_window_bits(false, 11),
        })),
        "zstd" => match (zstd::bulk::Compressor::new(3), zstd::bulk::Decompressor::new()) {
            (Ok(compress), Ok(decompress)) => Ok(Box::new(Zstd { compress, decompress })),
            (Err(e), _) | (_, Err(e)) => Err(format!("the zstd library cannot start: {e}")),
        },
        "lz4" => Ok(Box::new(Lz4)),
        _ => Err(format!(
            "eke has no library for {name}: only root can measure it, on a zram device that offers it"
        )),
    }
}

/// Estimates `name` from at most [`PAGES`] pages of the sample, before `until`. Times are the codec's alone, without the kernel's. `overhead` is the
/// allocator's memory per byte of data, if measured.
///
/// # Errors
/// The reason as a sentence.
pub(crate) fn estimate(
    name: &str,
    sample: &Sample,
    overhead: Option<f64>,
    until: Instant,
) -> Result<AlgorithmMeasurement, String> {
    let mut codec = codec(name)?;
    let mut trial = Trial::new(overhead.unwrap_or(USUAL_OVERHEAD)).map_err(|e| e.to_string())?;
    let all: Vec<usize> = (0..sample.len()).collect();
    let pages = variants::spread(&all, affordable(codec.as_mut(), sample, name, until)?);
    for batch in pages.chunks(pages.len().div_ceil(BATCHES).max(1)) {
        batch
            .iter()
            .take_while(|_| Instant::now() < until)
            .try_for_each(|i| trial.page(codec.as_mut(), sample.page(*i), name))?;
        trial.checkpoints.push(trial.now);
    }
    trial
        .row(name, sample.stored_share())
        .ok_or_else(|| format!("no page could be compressed with {name} in its time"))
}

/// The number of pages that fit into the time, by a few from all processes. A sample that is cut off at the end would have the first processes alone.
fn affordable(codec: &mut dyn Codec, sample: &Sample, name: &str, until: Instant) -> Result<usize, String> {
    let mut pilot = Trial::new(1.0).map_err(|e| e.to_string())?;
    let all: Vec<usize> = (0..sample.len()).collect();
    let started = Instant::now();
    variants::spread(&all, PILOT).into_iter().try_for_each(|i| pilot.page(codec, sample.page(i), name))?;
    let page_ns = started.elapsed().as_nanos() / PILOT as u128 + 1;
    let left_ns = until.saturating_duration_since(Instant::now()).as_nanos();
    Ok(PAGES.min((left_ns / page_ns) as usize))
}

/// An estimate in progress.
struct Trial {
    overhead: f64,
    out: Buffer,
    back: Buffer,
    store_ns: Vec<u64>,
    load_ns: Vec<u64>,
    now: Checkpoint,
    checkpoints: Vec<Checkpoint>,
}

impl Trial {
    fn new(overhead: f64) -> Result<Self> {
        let checkpoints = vec![Checkpoint::default()];
        let (out, back) = (Buffer::new(2)?, Buffer::new(1)?);
        Ok(Self {
            overhead,
            out,
            back,
            store_ns: vec![],
            load_ns: vec![],
            now: Checkpoint::default(),
            checkpoints,
        })
    }

    fn page(&mut self, codec: &mut dyn Codec, page: &[u8], name: &str) -> Result<(), String> {
        let start = Instant::now();
        let compressed = codec.compress(page, self.out.bytes_mut());
        self.store_ns.push(since_ns(start));
        let whole = compressed.filter(|n| (*n as f64) < page.len() as f64 * WHOLE_PAGE_FROM).is_none();
        if let Some(data) = compressed.and_then(|n| self.out.bytes().get(..n)) {
            let start = Instant::now();
            let good = codec.decompress(data, self.back.bytes_mut());
            self.load_ns.push(since_ns(start));
            if !good || self.back.bytes() != page {
                return Err(format!("the library for {name} decompressed a page to other content"));
            }
        }
        let bytes = if whole { page.len() } else { compressed.unwrap_or(page.len()) };
        self.add(bytes as u64, whole);
        Ok(())
    }

    fn add(&mut self, bytes: u64, whole: bool) {
        let memory = if whole { bytes } else { (bytes as f64 * self.overhead) as u64 };
        self.now.pages += 1;
        self.now.huge_pages += u64::from(whole);
        self.now.compressed_bytes += bytes;
        self.now.mem_used_bytes += memory;
    }

    fn row(mut self, name: &str, stored_share: f64) -> Option<AlgorithmMeasurement> {
        let page_bytes = rustix::param::page_size();
        let Ratio { ratio, ratio_low, incompressible_share } =
            ratio::from_checkpoints(&self.checkpoints, stored_share, page_bytes)?;
        let (store_p50, store_p99) = p50_p99(&mut self.store_ns);
        let (load_p50, load_p99) = p50_p99(&mut self.load_ns);
        Some(AlgorithmMeasurement {
            name: name.to_owned(),
            estimated: true,
            ratio,
            ratio_low,
            incompressible_share,
            pages: self.now.pages as u64,
            store_p50,
            store_p99,
            load_p50,
            load_p99,
            ..AlgorithmMeasurement::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_page() -> Vec<u8> {
        (0..4096u32).map(|i| b"the quick brown fox "[(i % 20) as usize] ^ (i / 512) as u8).collect()
    }

    #[test]
    fn codecs_restore_the_page() {
        for name in ["deflate", "zstd", "lz4"] {
            let mut trial = Trial::new(1.0).unwrap();
            let mut codec = codec(name).unwrap();
            for _ in 0..3 {
                trial.page(codec.as_mut(), &text_page(), name).unwrap();
            }
            assert!(trial.now.compressed_bytes < 3 * 2048, "{name}: {:?}", trial.now);
        }
    }

    #[test]
    fn noise_is_stored_uncompressed() {
        let mut noise = vec![0; 4096];
        rustix::rand::getrandom(&mut noise, rustix::rand::GetRandomFlags::empty()).unwrap();
        let mut trial = Trial::new(1.5).unwrap();
        trial.page(codec("deflate").unwrap().as_mut(), &noise, "deflate").unwrap();
        assert_eq!((trial.now.mem_used_bytes, trial.now.huge_pages), (4096, 1));
    }

    #[test]
    fn an_algorithm_without_a_library_is_an_error() {
        assert!(codec("842").err().unwrap().contains("no library for 842"));
    }
}
