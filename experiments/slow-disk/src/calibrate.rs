//! What the way to the server and back takes on this machine: loop device, FUSE, two threads that wake up.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use eke_model::units::Nanos;
use rustix::fs::OFlags;

use super::error::{Result, on};
use super::profile::{PAGE, Profile};

/// How many reads; they take 30 ms together.
const READS: usize = 48;
/// What each takes by the model meanwhile: long enough for the threads to fall asleep.
const SERVICE: Duration = Duration::from_micros(500);
/// What it takes when other programs run, too (fio on this project's machine: 50 to 100 µs); an idle moment shows less.
const LEAST: Duration = Duration::from_micros(100);
/// A machine that is busier than this keeps no disk's time.
const MOST: Duration = Duration::from_micros(400);

/// The disk to measure with.
pub(super) fn profile() -> Profile {
    Profile { latency: Nanos::from(SERVICE), ..Profile::plain() }
}

/// Reads the first page of `device`, which must have [`profile`], again and again; `late` says by how much its answers came
/// late in all. The path is what nine of ten reads take at most besides the service and that: where it is shorter the model
/// waits for the request before, so too much does no harm.
pub(super) fn path(device: &Path, late: impl Fn() -> Nanos) -> Result<Nanos> {
    let file = open_direct(device)?;
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        let before = late();
        let time = read_page(&file).map_err(on("read", device))?;
        let late = late().0.saturating_sub(before.0);
        times.push(time.saturating_sub(Duration::from_nanos(late)));
    }
    Ok(Nanos::from(typical(times)))
}

fn typical(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let nine_of_ten = times.get(times.len() * 9 / 10).copied().unwrap_or_default();
    nine_of_ten.saturating_sub(SERVICE).clamp(LEAST, MOST)
}

fn open_direct(device: &Path) -> Result<File> {
    let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(direct).open(device).map_err(on("open", device))
}

/// O_DIRECT wants an aligned buffer.
fn read_page(file: &File) -> std::io::Result<Duration> {
    let page = PAGE as usize;
    let mut buffer = vec![0u8; 2 * page];
    let start = buffer.as_ptr().align_offset(page).min(page);
    let begun = Instant::now();
    file.read_exact_at(&mut buffer[start..start + page], 0)?;
    Ok(begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_what_nine_of_ten_stay_below_within_bounds() {
        let times = |us: &[u64]| us.iter().map(|us| SERVICE + Duration::from_micros(*us)).collect::<Vec<_>>();
        assert_eq!(typical(times(&[209, 1, 2, 3, 4, 5, 6, 7, 8, 210])), Duration::from_micros(210));
        assert_eq!(typical(times(&[5_000; 10])), MOST);
        assert_eq!(typical(vec![Duration::from_micros(1); 10]), LEAST);
        assert_eq!(typical(Vec::new()), LEAST);
    }
}
