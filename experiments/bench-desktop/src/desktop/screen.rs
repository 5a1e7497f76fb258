//! The hash of a window's content.

use std::hash::Hasher;

use twox_hash::XxHash64;
use x11rb::protocol::xproto::{ConnectionExt as _, ImageFormat};

use super::stop::Stop;
use super::windows::Windows;

/// Rows fetched at once, so that neither the server nor the driver keeps a whole image.
const ROWS: u16 = 64;
/// The bits of a pixel that are colour. The viewer may leave anything in the others.
const COLOUR: u32 = 0x00ff_ffff;

/// The hash of the window without its lowest `status_bar` pixels: XXH64, the same on every machine. The window must be wholly
/// on the screen and above others: covered parts would show those.
///
/// # Errors
/// The window is gone.
pub(super) fn content(windows: &Windows, window: u32, status_bar: u16) -> Result<u64, Stop> {
    let (width, height) = windows.size(window)?;
    let height = document_height(height, status_bar);
    let mut hash = XxHash64::with_seed(0);
    for top in (0..height).step_by(usize::from(ROWS)) {
        let rows = ROWS.min(height - top);
        let y = i16::try_from(top).unwrap_or(i16::MAX);
        let image = windows.connection.get_image(ImageFormat::Z_PIXMAP, window, 0, y, width, rows, COLOUR)?;
        hash.write(&image.reply()?.data);
    }
    Ok(hash.finish())
}

/// How many rows of a window show the document.
pub(super) fn document_height(height: u16, status_bar: u16) -> u16 {
    height.saturating_sub(status_bar).max(1)
}
