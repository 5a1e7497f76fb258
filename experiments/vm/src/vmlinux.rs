//! Takes Debian's kernel out of its self-extracting image. QEMU starts the plain ELF file directly (PVH), and the slow
//! emulated processor is spared the decompression: a start takes half as long.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use super::error::{Error, Result, on};
use super::scratch::write_scratch;

/// Writes the kernel inside `image` (a `vmlinuz`) to `plain` as ELF.
///
/// # Errors
/// When the image has no xz payload (Debian's has), or `xz` is not there or fails. The image itself can be started then.
pub(super) fn extract(image: &Path, plain: &Path) -> Result<()> {
    let bytes = std::fs::read(image).map_err(on("read", image))?;
    let not_xz = || on("find an xz payload in", image)(std::io::ErrorKind::InvalidData.into());
    let (packed, part) = (plain.with_file_name("packed.part"), plain.with_file_name("plain.part"));
    write_scratch(&packed, payload(&bytes).ok_or_else(not_xz)?)?;
    let result = decompress(&packed, &part);
    drop(std::fs::remove_file(&packed));
    result?;
    std::fs::rename(&part, plain).map_err(on("make", plain))
}

/// The xz stream (and what follows it) in a bzImage, by its setup header's `payload_offset` and `payload_length`.
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

/// `--single-stream`: the image has its unpacked size behind the stream.
fn decompress(packed: &Path, plain: &Path) -> Result<()> {
    let input = File::open(packed).map_err(on("open", packed))?;
    let output =
        File::options().write(true).create(true).truncate(true).open(plain).map_err(on("make", plain))?;
    let mut command = Command::new("xz");
    command
        .args(["--decompress", "--stdout", "--single-stream"])
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::null());
    let failed = |answer| Error::Command { command: format!("xz <{}", packed.display()), answer };
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
    fn the_payload_is_where_the_header_says() {
        assert_eq!(payload(&image()), Some(b"\xfd7zXZ\0ab".as_slice()));
    }

    #[test]
    fn other_payloads_and_torn_images_have_none() {
        let mut other = image();
        other[1041] = b'8';
        assert_eq!(payload(&other), None);
        assert_eq!(payload(&image()[..1044]), None);
        assert_eq!(payload(b"\x7fELF"), None);
    }
}
