//! Estimates an algorithm with a library in user space: those that only zswap offers, or all if no zram device can be made. The results are marked as
//! estimates.

use std::path::PathBuf;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::buffer::Buffer;
use super::ratio::{Checkpoint, USUAL_PER_DATA};
use super::rounds::{PageDevice, PageDevices};
use super::variants::Variant;
use crate::error::{Error, Result};

/// The most pages of one estimate.
pub(crate) const PAGES: usize = 1024;
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
        _ => Err(format!("eke has no library for {name}")),
    }
}

/// Has `name` a library here?
///
/// # Errors
/// The reason as a sentence.
pub(crate) fn has_codec(name: &str) -> Result<(), String> {
    codec(name).map(drop)
}

/// Devices in this process's memory. Times are the codec's alone, without the kernel's.
pub(crate) struct Codecs {
    per_data: f64,
    most: usize,
}

impl Codecs {
    /// `per_data` is the allocator's memory for a byte of data, if measured. A device has room for at most `most` pages.
    pub(crate) fn new(per_data: Option<f64>, most: usize) -> Self {
        Self { per_data: per_data.unwrap_or(USUAL_PER_DATA), most }
    }
}

impl PageDevices for Codecs {
    fn add(&mut self, variant: &Variant, pages: usize) -> Result<Box<dyn PageDevice + '_>> {
        let name = variant.name.clone();
        let codec = codec(&name).map_err(eke_linux::Error::Refused)?;
        let stored = Buffer::new(pages.min(self.most))?;
        let (out, back) = (Buffer::new(2)?, Buffer::new(1)?);
        let now = Checkpoint::default();
        Ok(Box::new(InMemory {
            name,
            codec,
            per_data: self.per_data,
            stored,
            slots: vec![],
            end: 0,
            out,
            back,
            now,
        }))
    }
}

/// A page in [`InMemory::stored`].
#[derive(Clone, Copy)]
struct Slot {
    start: usize,
    len: usize,
    compressed: bool,
}

/// Compressed pages one after the other.
struct InMemory {
    name: String,
    codec: Box<dyn Codec>,
    per_data: f64,
    stored: Buffer,
    slots: Vec<Slot>,
    end: usize,
    out: Buffer,
    back: Buffer,
    now: Checkpoint,
}

impl InMemory {
    fn add(&mut self, bytes: u64, whole: bool) {
        let memory = if whole { bytes } else { (bytes as f64 * self.per_data) as u64 };
        self.now.huge_pages += u64::from(whole);
        self.now.compressed_bytes += bytes;
        self.now.mem_used_bytes += memory;
    }

    fn full(&self) -> Error {
        eke_linux::Error::Refused(format!("no memory for another page compressed by {}", self.name)).into()
    }
}

impl PageDevice for InMemory {
    fn store(&mut self, at: usize, page: &[u8]) -> Result<()> {
        let compressed = self.codec.compress(page, self.out.bytes_mut());
        let small = compressed.filter(|n| (*n as f64) < page.len() as f64 * WHOLE_PAGE_FROM);
        let data = small.and_then(|n| self.out.bytes().get(..n)).unwrap_or(page);
        let slot = Slot { start: self.end, len: data.len(), compressed: small.is_some() };
        match self.stored.bytes_mut().get_mut(slot.start..slot.start + slot.len) {
            Some(room) if at == self.slots.len() => room.copy_from_slice(data),
            _ => return Err(self.full()),
        }
        self.end += slot.len;
        self.slots.push(slot);
        self.add(slot.len as u64, !slot.compressed);
        Ok(())
    }

    fn load(&mut self, at: usize) -> Result<&[u8]> {
        let slot = self.slots.get(at).copied().ok_or_else(|| self.full())?;
        let data = self.stored.bytes().get(slot.start..slot.start + slot.len).unwrap_or_default();
        if !slot.compressed {
            return Ok(data);
        }
        let good = self.codec.decompress(data, self.back.bytes_mut());
        Ok(if good { self.back.bytes() } else { &[] })
    }

    fn reading(&mut self, pages: usize) -> Result<Checkpoint> {
        Ok(Checkpoint { pages, ..self.now })
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(format!("the library for {}", self.name))
    }

    fn remove(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_page() -> Vec<u8> {
        (0..4096u32).map(|i| b"the quick brown fox "[(i % 20) as usize] ^ (i / 512) as u8).collect()
    }

    fn with_device(name: &str, per_data: f64, work: impl FnOnce(&mut dyn PageDevice)) {
        let mut codecs = Codecs::new(Some(per_data), 8);
        let mut device = codecs.add(&Variant::as_shipped(name), 4).unwrap();
        work(device.as_mut());
        device.remove().unwrap();
    }

    #[test]
    fn codecs_restore_the_page() {
        for name in ["deflate", "zstd", "lz4"] {
            with_device(name, 1.0, |device| {
                (0..3).for_each(|at| device.store(at, &text_page()).unwrap());
                assert!([0, 2, 1].into_iter().all(|at| device.load(at).unwrap() == text_page()), "{name}");
                let now = device.reading(3).unwrap();
                assert!(now.compressed_bytes < 3 * 2048 && now.pages == 3, "{name}: {now:?}");
                assert!(device.load(3).is_err());
            });
        }
    }

    #[test]
    fn noise_is_stored_uncompressed() {
        let mut noise = vec![0; 4096];
        rustix::rand::getrandom(&mut noise, rustix::rand::GetRandomFlags::empty()).unwrap();
        with_device("deflate", 1.5, |device| {
            device.store(0, &noise).unwrap();
            let now = device.reading(1).unwrap();
            assert_eq!((now.mem_used_bytes, now.huge_pages), (4096, 1));
            assert_eq!(device.load(0).unwrap(), noise);
        });
    }

    #[test]
    fn an_algorithm_without_a_library_is_an_error() {
        assert!(has_codec("842").err().unwrap().contains("no library for 842"));
    }
}
