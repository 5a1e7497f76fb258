//! A block device that encrypts another one: device-mapper's `crypt` (`linux/dm-ioctl.h`, Documentation/admin-guide/device-mapper/dm-crypt.rst).

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::device::{OpenDevice, control};

pub(crate) const CONTROL: &str = "/dev/mapper/control";
/// The oldest interface with deferred removal: Linux 3.13.
const VERSION: [u32; 3] = [4, 27, 0];
const DEV_CREATE: u32 = 3;
const DEV_REMOVE: u32 = 4;
/// Without `DM_SUSPEND_FLAG` it resumes: the loaded table is in use from then on.
const DEV_SUSPEND: u32 = 6;
const TABLE_LOAD: u32 = 9;
/// The kernel wipes its copies of the request, which has the key.
const SECURE_DATA: u32 = 1 << 15;
const DEFERRED_REMOVE: u32 = 1 << 17;
/// `CRYPT_XTS` of AES-256 takes two keys.
const KEY_BYTES: usize = 64;
const CIPHER: &str = "aes-xts-plain64";
const SECTOR_BYTES: u64 = 512;
const PAGE_BYTES: u64 = 4096;

/// `struct dm_ioctl`, `struct dm_target_spec` and its parameters.
#[repr(C)]
struct Request {
    version: [u32; 3],
    data_size: u32,
    data_start: u32,
    target_count: u32,
    open_count: i32,
    flags: u32,
    event_nr: u32,
    padding: u32,
    dev: u64,
    name: [u8; 128],
    uuid_and_data: [u8; 136],
    sector_start: u64,
    length: u64,
    status: i32,
    next: u32,
    target_type: [u8; 16],
    params: [u8; 512],
}

/// Where `struct dm_ioctl` ends.
const DATA_START: usize = std::mem::offset_of!(Request, sector_start);

impl Request {
    fn new(name: &str, flags: u32) -> io::Result<Self> {
        let mut request = Self {
            version: VERSION,
            data_size: size_of::<Self>() as u32,
            data_start: DATA_START as u32,
            target_count: 0,
            open_count: 0,
            flags,
            event_nr: 0,
            padding: 0,
            dev: 0,
            name: [0; 128],
            uuid_and_data: [0; 136],
            sector_start: 0,
            length: 0,
            status: 0,
            next: 0,
            target_type: [0; 16],
            params: [0; 512],
        };
        put(&mut request.name, name.as_bytes())?;
        Ok(request)
    }

    fn send(&mut self, on: &File, command: u32) -> io::Result<()> {
        control(on, opcode(command), &raw mut *self).map(drop)
    }
}

/// `_IOWR(DM_IOCTL, command, struct dm_ioctl)`.
const fn opcode(command: u32) -> u32 {
    3 << 30 | (DATA_START as u32) << 16 | 0xfd << 8 | command
}

/// Copies a text that must leave a byte for its end.
fn put(to: &mut [u8], text: &[u8]) -> io::Result<()> {
    match to.get_mut(..text.len() + 1) {
        Some(room) => {
            room[..text.len()].copy_from_slice(text);
            Ok(())
        }
        None => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// A mapping called `name` of these bytes of `below`, from a page to a page, with a new key that nothing but the kernel keeps. It is removed when it is closed.
///
/// # Errors
/// The kernel's answer: EINVAL without dm-crypt or AES in XTS mode. Nothing is left then.
pub(crate) fn add(name: &str, below: &Path, bytes: Range<u64>) -> io::Result<OpenDevice> {
    let on = OpenOptions::new().read(true).write(true).open(CONTROL)?;
    let mut created = Request::new(name, 0)?;
    created.send(&on, DEV_CREATE)?;
    let path = PathBuf::from(format!("/dev/dm-{}", minor(created.dev)));
    let opened =
        start(&on, name, below, bytes).and_then(|()| OpenOptions::new().read(true).write(true).open(&path));
    // While it is open, this is for later; else, at once.
    let removed = Request::new(name, DEFERRED_REMOVE).and_then(|mut request| request.send(&on, DEV_REMOVE));
    let file = opened?;
    removed?;
    Ok(OpenDevice { path, file })
}

fn start(on: &File, name: &str, below: &Path, bytes: Range<u64>) -> io::Result<()> {
    let mut request = Request::new(name, SECURE_DATA)?;
    request.target_count = 1;
    // Whole pages, as zram writes them.
    request.length = (bytes.end - bytes.start) / PAGE_BYTES * (PAGE_BYTES / SECTOR_BYTES);
    put(&mut request.target_type, b"crypt")?;
    table(&mut request.params, &number_of(below)?, bytes.start / SECTOR_BYTES)?;
    let loaded = request.send(on, TABLE_LOAD);
    wipe(&mut request.params);
    loaded?;
    Request::new(name, 0)?.send(on, DEV_SUSPEND)
}

/// The device as the table has it. udev's names may contain backslashes (`by-label/a\x20b`), which end words there.
fn number_of(device: &Path) -> io::Result<String> {
    let of = std::fs::metadata(device)?;
    if !of.file_type().is_block_device() {
        return Err(io::Error::from_raw_os_error(libc::ENOTBLK));
    }
    Ok(format!("{}:{}", rustix::fs::major(of.rdev()), rustix::fs::minor(of.rdev())))
}

/// `CIPHER KEY 0 DEVICE SECTOR`. The key is written where it is sent from, and nowhere else.
fn table(params: &mut [u8], below: &str, from_sector: u64) -> io::Result<()> {
    let mut key = [0; KEY_BYTES];
    random(&mut key)?;
    let before = CIPHER.len() + 1;
    let rest = format!(" 0 {below} {from_sector}");
    put(params, &[CIPHER.as_bytes(), b" ", &[b'0'; 2 * KEY_BYTES], rest.as_bytes()].concat())?;
    let digits = params[before..].chunks_exact_mut(2);
    for (digits, byte) in digits.zip(key) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        digits.copy_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
    wipe(&mut key);
    Ok(())
}

fn random(mut out: &mut [u8]) -> io::Result<()> {
    while !out.is_empty() {
        let got = rustix::io::retry_on_intr(|| {
            rustix::rand::getrandom(&mut *out, rustix::rand::GetRandomFlags::empty())
        })?;
        out = &mut out[got..];
    }
    Ok(())
}

fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    // the compiler must not drop writes that nothing reads
    std::hint::black_box(bytes);
}

/// Of `huge_encode_dev` (`linux/kdev_t.h`).
fn minor(dev: u64) -> u64 {
    dev & 0xff | dev >> 12 & 0xfff00
}

/// Removes the mapping, when it is closed. A missing one needs nothing.
///
/// # Errors
/// The kernel's answer.
pub(crate) fn remove(name: &str) -> io::Result<()> {
    let on = match OpenOptions::new().read(true).write(true).open(CONTROL) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    match Request::new(name, DEFERRED_REMOVE)?.send(&on, DEV_REMOVE) {
        Err(e) if e.raw_os_error() == Some(libc::ENXIO) => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_is_the_kernels() {
        assert_eq!((DATA_START, std::mem::offset_of!(Request, params)), (312, 312 + 40));
        assert_eq!((opcode(DEV_CREATE), opcode(TABLE_LOAD)), (0xc138_fd03, 0xc138_fd09));
        assert_eq!(minor(0x00f0_fd03), 0xf03);
    }

    #[test]
    fn a_table_has_another_key_each_time() {
        let made = || {
            let mut params = [0; 512];
            table(&mut params, "7:7", 2048).unwrap();
            let end = params.iter().position(|b| *b == 0).unwrap();
            String::from_utf8(params[..end].to_vec()).unwrap()
        };
        let (one, two) = (made(), made());
        let words: Vec<&str> = one.split(' ').collect();
        assert_eq!((words[0], &words[2..]), (CIPHER, &["0", "7:7", "2048"][..]));
        assert!(words[1].len() == 2 * KEY_BYTES && words[1].bytes().all(|b| b.is_ascii_hexdigit()), "{one}");
        assert_ne!(one, two);
    }

    #[test]
    fn a_name_that_does_not_fit_is_refused() {
        assert!(Request::new(&"x".repeat(128), 0).is_err() && Request::new(&"x".repeat(127), 0).is_ok());
    }
}
