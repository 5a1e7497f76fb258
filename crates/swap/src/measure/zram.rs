//! Scratch zram devices for the sample: their features, and one page of them at a time.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use eke_linux::{Root, parse};
use eke_model::step::ZramSpec;
use eke_model::units::Bytes;
use rustix::fs::OFlags;

use super::buffer::Buffer;
use super::ratio::Checkpoint;
use super::rounds::{PageDevice, PageDevices};
use super::scratch::{Device, Scratch};
use super::variants::Variant;
use crate::error::{Error, Result};
use crate::facts::ZramFeatures;
use crate::probe;

/// Algorithms for a first device, whose file then lists those of the kernel.
const LIKELY: [&str; 4] = ["lzo-rle", "lzo", "lz4", "zstd"];

/// Reads the features of the kernel's zram from a scratch device.
///
/// # Errors
/// The kernel's refusal of a device, or of every likely algorithm.
pub(crate) fn discover(root: &Root, scratch: &mut dyn Scratch) -> Result<ZramFeatures> {
    let mut refusal = None;
    for name in LIKELY {
        match Device::add(&mut *scratch, &spec(&Variant::as_shipped(name), 1 << 20)) {
            Ok(device) => {
                let features = probe::zram::features(root, device.name());
                device.finish()?;
                return Ok(features?);
            }
            Err(e) => refusal = Some(e),
        }
    }
    Err(refusal.unwrap_or_else(|| eke_linux::Error::Refused("zram names no algorithm".into()).into()))
}

fn spec(variant: &Variant, bytes: u64) -> ZramSpec {
    ZramSpec {
        algorithm: variant.name.clone(),
        params: variant.params.clone(),
        dictionary: variant.dictionary.clone(),
        recompress_with: None,
        backing_dev: None,
        backing_encrypted: false,
        backing_file: None,
        disksize: Bytes(bytes),
        swap_priority: None,
    }
}

/// Makes scratch devices.
pub(crate) struct ZramDevices<'a> {
    pub root: &'a Root,
    pub scratch: &'a mut dyn Scratch,
}

impl PageDevices for ZramDevices<'_> {
    fn add(&mut self, variant: &Variant, pages: usize) -> Result<Box<dyn PageDevice + '_>> {
        let bytes = (pages * rustix::param::page_size()) as u64;
        let device = Device::add(&mut *self.scratch, &spec(variant, bytes))?;
        let path = self.root.path(format!("dev/{}", device.name()));
        let file = open(&path)?;
        Ok(Box::new(OnZram { root: self.root, device, file, path, page: Buffer::new(1)? }))
    }
}

/// Opens it for direct I/O, so that the device is timed and not the page cache.
fn open(path: &std::path::Path) -> Result<File> {
    let direct = OFlags::DIRECT.bits() as i32;
    let opened = OpenOptions::new().read(true).write(true).custom_flags(direct).open(path);
    opened.map_err(|e| Error::io("open", path, e))
}

/// One scratch device. The file is closed before the device is removed.
struct OnZram<'a> {
    root: &'a Root,
    file: File,
    device: Device<'a>,
    path: PathBuf,
    page: Buffer,
}

fn offset(at: usize) -> u64 {
    (at * rustix::param::page_size()) as u64
}

impl PageDevice for OnZram<'_> {
    fn store(&mut self, at: usize, page: &[u8]) -> Result<()> {
        let written = self.file.write_all_at(page, offset(at));
        written.map_err(|e| Error::io("write a page to", &self.path, e))
    }

    fn load(&mut self, at: usize) -> Result<&[u8]> {
        let got = self.file.read_exact_at(self.page.bytes_mut(), offset(at));
        got.map_err(|e| Error::io("read a page from", &self.path, e))?;
        Ok(self.page.bytes())
    }

    fn reading(&mut self, pages: usize) -> Result<Checkpoint> {
        let name = self.device.name();
        let text = self.root.read(format!("sys/block/{name}/mm_stat"))?;
        let stat = parse::zram::mm_stat(name, &text);
        Ok(Checkpoint {
            pages,
            mem_used_bytes: stat.mem_used.0,
            compressed_bytes: stat.compr_data.0,
            huge_pages: stat.huge_pages,
        })
    }

    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn remove(self: Box<Self>) -> Result<()> {
        let Self { file, device, .. } = *self;
        drop(file);
        device.finish()
    }
}
