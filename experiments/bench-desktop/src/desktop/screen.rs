//! What a window shows, as a hash.

use std::hash::Hasher;

use twox_hash::XxHash64;
use x11rb::protocol::xproto::{ConnectionExt as _, ImageFormat};

use super::room::Stop;
use super::windows::Windows;

/// Rows that are fetched at once, so that neither the server nor the driver holds a whole image.
const ROWS: u16 = 64;
/// The bits of a pixel that are colour; the rest is whatever the viewer left there.
const COLOUR: u32 = 0x00ff_ffff;

/// The hash (XXH64, the same everywhere) of the window but for its lowest `below` pixels. The window must be on the
/// screen as a whole, and above others: hidden parts would show those.
///
/// # Errors
/// The window is gone.
pub(super) fn content(windows: &Windows, window: u32, below: u16) -> Result<u64, Stop> {
    let (width, height) = windows.size(window)?;
    let height = document_height(height, below);
    let mut hash = XxHash64::with_seed(0);
    for top in (0..height).step_by(usize::from(ROWS)) {
        let rows = ROWS.min(height - top);
        let y = i16::try_from(top).unwrap_or(i16::MAX);
        let image = windows.connection.get_image(ImageFormat::Z_PIXMAP, window, 0, y, width, rows, COLOUR)?;
        hash.write(&image.reply()?.data);
    }
    Ok(hash.finish())
}

/// How many rows of a window are document.
pub(super) fn document_height(height: u16, below: u16) -> u16 {
    height.saturating_sub(below).max(1)
}
