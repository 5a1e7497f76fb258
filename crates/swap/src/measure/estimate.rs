//! Estimates an algorithm with a library in user space: those that only zswap offers, or all if no zram device can be made. The results are marked as
//! estimates.

use std::path::PathBuf;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::buffer::Buffer;
use super::ratio::Checkpoint;
use super::rounds::PageDevice;
use super::variants::Variant;
use crate::error::{Error, Result};

/// Pages of memory that are taken at a time: not more often than one page in a hundred takes, whose time would be the 99th percentile.
const CHUNK: usize = 256;
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

/// A device in this process's memory. Times are the codec's alone, without the kernel's; a reading has no memory used, which is the allocator's.
///
/// # Errors
/// No library for the algorithm, or no memory.
pub(crate) fn device(variant: &Variant) -> Result<Box<dyn PageDevice>> {
    let name = variant.name.clone();
    let codec = codec(&name).map_err(eke_linux::Error::Refused)?;
    let (out, back) = (Buffer::new(2)?, Buffer::new(1)?);
    let now = Checkpoint::default();
    Ok(Box::new(InMemory { name, codec, chunks: vec![], slots: vec![], end: 0, out, back, now }))
}

/// A page in the memory of [`InMemory`].
#[derive(Clone, Copy)]
struct Slot {
    chunk: usize,
    start: usize,
    len: usize,
    compressed: bool,
}

/// Compressed pages one after the other, in chunks.
struct InMemory {
    name: String,
    codec: Box<dyn Codec>,
    chunks: Vec<Buffer>,
    slots: Vec<Slot>,
    /// The end of the last page in the last chunk.
    end: usize,
    out: Buffer,
    back: Buffer,
    now: Checkpoint,
}

impl InMemory {
    /// Room for `len` bytes, at most a page.
    fn room(&mut self, len: usize, compressed: bool) -> Result<Slot> {
        if self.chunks.last().is_none_or(|chunk| chunk.bytes().len() < self.end + len) {
            self.chunks.push(Buffer::new(CHUNK)?);
            self.end = 0;
        }
        let slot = Slot { chunk: self.chunks.len() - 1, start: self.end, len, compressed };
        self.end += len;
        Ok(slot)
    }

    fn no_page(&self, at: usize) -> Error {
        eke_linux::Error::Refused(format!("page {at} was not stored by {}", self.name)).into()
    }
}

impl PageDevice for InMemory {
    fn store(&mut self, at: usize, page: &[u8]) -> Result<()> {
        let compressed = self.codec.compress(page, self.out.bytes_mut());
        let small = compressed.filter(|n| (*n as f64) < page.len() as f64 * WHOLE_PAGE_FROM);
        let slot = self.room(small.unwrap_or(page.len()), small.is_some())?;
        let data = small.and_then(|n| self.out.bytes().get(..n)).unwrap_or(page);
        match self.chunks[slot.chunk].bytes_mut().get_mut(slot.start..slot.start + slot.len) {
            Some(room) if at == self.slots.len() => room.copy_from_slice(data),
            _ => return Err(self.no_page(at)),
        }
        self.slots.push(slot);
        self.now.huge_pages += u64::from(!slot.compressed);
        self.now.compressed_bytes += slot.len as u64;
        Ok(())
    }

    fn load(&mut self, at: usize) -> Result<&[u8]> {
        let slot = self.slots.get(at).copied().ok_or_else(|| self.no_page(at))?;
        let data = self.chunks[slot.chunk].bytes().get(slot.start..slot.start + slot.len).unwrap_or_default();
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

    fn with_device(name: &str, work: impl FnOnce(&mut dyn PageDevice)) {
        let mut device = device(&Variant::as_shipped(name)).unwrap();
        work(device.as_mut());
        device.remove().unwrap();
    }

    #[test]
    fn codecs_restore_the_page() {
        for name in ["deflate", "zstd", "lz4"] {
            with_device(name, |device| {
                (0..3).for_each(|at| device.store(at, &text_page()).unwrap());
                assert!([0, 2, 1].into_iter().all(|at| device.load(at).unwrap() == text_page()), "{name}");
                let now = device.reading(3).unwrap();
                assert!(now.compressed_bytes < 3 * 2048 && now.pages == 3, "{name}: {now:?}");
                assert!(device.load(3).is_err());
            });
        }
    }

    fn noise() -> Vec<u8> {
        let mut noise = vec![0; rustix::param::page_size()];
        rustix::rand::getrandom(&mut noise, rustix::rand::GetRandomFlags::empty()).unwrap();
        noise
    }

    #[test]
    fn noise_is_stored_uncompressed_in_as_many_chunks_as_it_needs() {
        let (noise, pages) = (noise(), 2 * CHUNK + 1);
        with_device("deflate", |device| {
            (0..pages).for_each(|at| device.store(at, &noise).unwrap());
            let mut now = device.reading(pages).unwrap();
            now.allocate(1.5);
            assert_eq!((now.mem_used_bytes, now.huge_pages), ((pages * noise.len()) as u64, pages as u64));
            assert!((0..pages).all(|at| device.load(at).unwrap() == noise));
        });
    }

    #[test]
    fn an_algorithm_without_a_library_is_an_error() {
        assert!(has_codec("842").err().unwrap().contains("no library for 842"));
    }
}
