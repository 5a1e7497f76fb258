//! Extracts Debian's kernel from its self-extracting image. QEMU boots the plain ELF file directly (PVH), without a
//! decompression on the slow emulated processor: booting takes half as long.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use super::error::{Error, Result, on};
use super::scratch::write_scratch;

/// Writes the kernel inside `image` (a `vmlinuz`) to `plain` as ELF.
///
/// # Errors
/// The image has no xz payload (Debian's has), or `xz` is missing or fails. The image itself can then be booted.
pub(super) fn extract(image: &Path, plain: &Path) -> Result<()> {
    let bytes = std::fs::read(image).map_err(on("read", image))?;
    let not_xz = || on("find an xz payload in", image)(std::io::ErrorKind::InvalidData.into());
    let (compressed, part) = (plain.with_file_name("compressed.part"), plain.with_file_name("plain.part"));
    write_scratch(&compressed, payload(&bytes).ok_or_else(not_xz)?)?;
    let result = decompress(&compressed, &part);
    drop(std::fs::remove_file(&compressed));
    result?;
    std::fs::rename(&part, plain).map_err(on("make", plain))
}

/// The xz stream (and the bytes after it) in a bzImage, from its setup header's `payload_offset` and `payload_length`.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let sectors = match *image.get(0x1f1)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = ((sectors + 1) * 512).checked_add(number(0x248)?)?;
    let payload = image.get(start..start.checked_add(number(0x24c)?)?)?;
    payload.starts_with(b"\xfd7zXZ\0").then_some(payload)
}

/// `--single-stream`, because the image has its uncompressed size after the stream.
fn decompress(compressed: &Path, plain: &Path) -> Result<()> {
    let input = File::open(compressed).map_err(on("open", compressed))?;
    let output =
        File::options().write(true).create(true).truncate(true).open(plain).map_err(on("make", plain))?;
    let mut command = Command::new("xz");
    command
        .args(["--decompress", "--stdout", "--single-stream"])
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::null());
    let failed = |answer| Error::Command { command: format!("xz <{}", compressed.display()), answer };
    let status = command.status().map_err(|error| failed(format!("did not start: {error}")))?;
    if status.success() { Ok(()) } else { Err(failed(format!("ended with {status}"))) }
}

#[cfg(test)]
mod tests {
    use super::payload;

    fn image() -> Vec<u8> {
        let mut image = vec![0; 1024 + 16 + 8];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        (image[0x248], image[0x24c]) = (16, 8);
        image[1040..].copy_from_slice(b"\xfd7zXZ\0ab");
        image
    }

    #[test]
    fn the_payload_is_where_the_header_points() {
        assert_eq!(payload(&image()), Some(b"\xfd7zXZ\0ab".as_slice()));
    }

    #[test]
    fn other_payloads_and_truncated_images_have_none() {
        let mut other = image();
        other[1041] = b'8';
        assert_eq!(payload(&other), None);
        assert_eq!(payload(&image()[..1044]), None);
        assert_eq!(payload(b"\x7fELF"), None);
    }
}
