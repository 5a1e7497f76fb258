//! LZ4's block format.

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};

use super::{Codec, Compressed, Engine, Unreadable};
use crate::error::OutOfMemory;

/// LZ4 compresses blocks when they are admitted. It gives up on incompressible data by itself, at several GB/s.
#[derive(Debug, Clone, Copy)]
pub struct Lz4;

struct Tables(CompressTable);

impl Codec for Lz4 {
    fn name(&self) -> &'static str {
        "lz4"
    }

    fn bound(&self, len: usize) -> usize {
        get_maximum_output_size(len)
    }

    fn gives_up_early(&self) -> bool {
        true
    }

    fn engine(&self) -> Result<Box<dyn Engine>, OutOfMemory> {
        Ok(Box::new(Tables(CompressTable::large())))
    }
}

impl Engine for Tables {
    fn compress_batch(&mut self, blocks: &[&[u8]], out: &mut Compressed) {
        for block in blocks {
            let bound = get_maximum_output_size(block.len());
            out.push_with(bound, |room| compress_into_with_table(block, room, &mut self.0).ok());
        }
    }

    fn decompress(&mut self, compressed: &[u8], out: &mut [u8]) -> Result<(), Unreadable> {
        match decompress_into(compressed, out) {
            Ok(len) if len == out.len() => Ok(()),
            _ => Err(Unreadable),
        }
    }
}
