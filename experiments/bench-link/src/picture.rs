//! A moving picture: the X client of `bench link`. ssh starts it on the server.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    ConnectionExt, CreateGCAux, CreateWindowAux, EventMask, ImageFormat, WindowClass,
};

const WIDTH: u16 = 640;
const HEIGHT: u16 = 480;
/// The lines of one request. The X protocol limits a request to 256 KiB.
const LINES: u16 = 64;
const BYTES_PER_PIXEL: usize = 4;

/// The frames drawn in some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Frames {
    /// Frames that the X server has drawn.
    pub frames: u32,
    /// The time.
    pub seconds: f64,
}

impl Frames {
    /// Frames per second.
    pub fn per_s(&self) -> f64 {
        f64::from(self.frames) / self.seconds.max(1e-9)
    }
}

/// Draws frames of 640 x 480 on the display named by `DISPLAY`, as fast as the X server accepts them. Each frame is complete and differs
/// from the one before. A frame counts when the server answers a request sent after it.
///
/// # Errors
/// A sentence: there is no display, or the connection ended.
pub fn show(time: Duration) -> Result<Frames, String> {
    let (x, screen) = x11rb::connect(None).map_err(|e| format!("no display: {e}"))?;
    let root = &x.setup().roots[screen];
    if root.root_depth < 24 {
        return Err(format!("the display has {} bits per pixel, and 24 are needed", root.root_depth));
    }
    let ids = x.generate_id().and_then(|window| Ok((window, x.generate_id()?)));
    let (window, gc) = ids.map_err(|e| e.to_string())?;
    let aux = CreateWindowAux::new().event_mask(EventMask::NO_EVENT).override_redirect(1);
    let made = x
        .create_window(0, window, root.root, 0, 0, WIDTH, HEIGHT, 0, WindowClass::INPUT_OUTPUT, 0, &aux)
        .and_then(|_| x.map_window(window))
        .and_then(|_| x.create_gc(gc, window, &CreateGCAux::new()));
    made.map_err(|e| e.to_string())?;
    let start = Instant::now();
    let mut frames = 0;
    while start.elapsed() < time {
        frame(&x, window, gc, root.root_depth, frames)
            .map_err(|e| format!("the connection to the display ended: {e}"))?;
        frames += 1;
    }
    Ok(Frames { frames, seconds: start.elapsed().as_secs_f64() })
}

fn frame(
    x: &impl Connection,
    window: u32,
    gc: u32,
    depth: u8,
    number: u32,
) -> Result<(), x11rb::errors::ReplyError> {
    for top in (0..HEIGHT).step_by(usize::from(LINES)) {
        let lines = LINES.min(HEIGHT - top);
        let data = strip(top, lines, number);
        let top = i16::try_from(top).unwrap_or(i16::MAX);
        x.put_image(ImageFormat::Z_PIXMAP, window, gc, WIDTH, lines, 0, top, 0, depth, &data)?;
    }
    x.get_input_focus()?.reply()?;
    Ok(())
}

/// Some lines of a frame: colours that move from frame to frame.
fn strip(top: u16, lines: u16, number: u32) -> Vec<u8> {
    let mut data = Vec::with_capacity(usize::from(WIDTH) * usize::from(lines) * BYTES_PER_PIXEL);
    for y in top..top + lines {
        for x in 0..WIDTH {
            let [a, b, ..] = (u32::from(x) + number * 3).to_le_bytes();
            let [c, ..] = (u32::from(y) ^ number).to_le_bytes();
            data.extend([a, c, a ^ b.wrapping_add(c), 0]);
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_differ_and_are_complete() {
        let bytes: usize =
            (0..HEIGHT).step_by(64).map(|top| strip(top, LINES.min(HEIGHT - top), 0).len()).sum();
        assert_eq!(bytes, 640 * 480 * 4);
        assert_ne!(strip(0, 64, 1), strip(0, 64, 2));
        assert_eq!(Frames { frames: 30, seconds: 1.5 }.per_s(), 20.0);
    }
}
