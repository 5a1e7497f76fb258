//! Creates disk images on the host.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use super::error::{Error, Result, on};
use super::kit::Kit;
use super::recipe::{Disk, Format};
use super::scratch::run_to_end;

const PAGE: usize = 4096;

/// Creates the disk's image if it does not exist.
pub(super) fn ensure(kit: &Kit, disk: &Disk) -> Result<()> {
    if disk.image.exists() {
        return Ok(());
    }
    let header = if disk.format == Format::Swap { swap_header(disk.size)? } else { Vec::new() };
    make_image(&disk.image, disk.size, &header)?;
    if disk.format != Format::Ext4 {
        return Ok(());
    }
    make_ext4(kit, &disk.image, None).inspect_err(|_| drop(std::fs::remove_file(&disk.image)))
}

/// Creates a sparse file of `size` bytes that starts with `header`. Fails if the file exists.
pub(super) fn make_image(image: &Path, size: u64, header: &[u8]) -> Result<()> {
    let mut file =
        OpenOptions::new().write(true).create_new(true).open(image).map_err(on("make the image", image))?;
    file.set_len(size).map_err(on("set the size of", image))?;
    file.write_all(header).map_err(on("write", image))
}

/// Creates an ext4 file system in the image, with the files of the directory `contents`.
pub(super) fn make_ext4(kit: &Kit, image: &Path, contents: Option<&Path>) -> Result<()> {
    let mut command = Command::new(&kit.mke2fs);
    command.args(["-q", "-F", "-t", "ext4", "-m", "0"]);
    if let Some(place) = contents {
        command.arg("-d").arg(place);
    }
    run_to_end(command.arg(image)).map(drop)
}

/// The first page of a swap area, in the format of mkswap.
fn swap_header(size: u64) -> Result<Vec<u8>> {
    let pages = size / PAGE as u64;
    let last = u32::try_from(pages.saturating_sub(1)).ok().filter(|_| pages >= 10);
    let last =
        last.ok_or_else(|| Error::Recipe(format!("a swap disk of {size} bytes: give 40 KiB to 16 TiB")))?;
    let mut page = vec![0; PAGE];
    page[1024..1028].copy_from_slice(&1_u32.to_le_bytes());
    page[1028..1032].copy_from_slice(&last.to_le_bytes());
    page[PAGE - 10..].copy_from_slice(b"SWAPSPACE2");
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::{make_image, swap_header};

    #[test]
    fn a_swap_header_has_version_length_and_magic() {
        let page = swap_header(64 << 20).unwrap();
        assert_eq!(page[1024..1032], [1, 0, 0, 0, 0xff, 0x3f, 0, 0]);
        assert!(page.ends_with(b"SWAPSPACE2"));
        assert!(swap_header(4096).unwrap_err().to_string().contains("4096 bytes"));
    }

    #[test]
    fn an_image_is_not_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let image = place.path().join("disk");
        make_image(&image, 8192, b"head").unwrap();
        assert_eq!(std::fs::metadata(&image).unwrap().len(), 8192);
        assert!(make_image(&image, 1, b"").is_err());
    }
}
