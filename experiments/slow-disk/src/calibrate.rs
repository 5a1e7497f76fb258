//! Measures the overhead of a request on this machine: loop device, FUSE, and two threads that wake up.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use eke_model::units::Nanos;
use rustix::fs::OFlags;

use super::error::{Result, on};
use super::profile::{PAGE, Profile};

/// Number of reads; together they take 30 ms.
const READS: usize = 48;
/// Service time in the model meanwhile: long enough for the threads to sleep.
const SERVICE: Duration = Duration::from_micros(500);
/// Least overhead: the time when other programs run, too (fio on this project's machine: 50 to 100 µs). An idle moment
/// shows less.
const LEAST: Duration = Duration::from_micros(100);
/// Most overhead: a machine busier than this cannot keep a disk's time.
const MOST: Duration = Duration::from_micros(400);

/// The profile to calibrate with.
pub(super) fn profile() -> Profile {
    Profile { latency: Nanos::from(SERVICE), ..Profile::plain() }
}

/// Reads the first page of `device`, which must have [`profile`], repeatedly. `late` returns the total lateness of its
/// answers. The overhead is the 90th percentile of the reads, minus service time and lateness. Too large an overhead
/// does no harm: the model then waits for the previous request.
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

/// O_DIRECT needs an aligned buffer.
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
    fn the_overhead_is_the_90th_percentile_within_bounds() {
        let times = |us: &[u64]| us.iter().map(|us| SERVICE + Duration::from_micros(*us)).collect::<Vec<_>>();
        assert_eq!(typical(times(&[209, 1, 2, 3, 4, 5, 6, 7, 8, 210])), Duration::from_micros(210));
        assert_eq!(typical(times(&[5_000; 10])), MOST);
        assert_eq!(typical(vec![Duration::from_micros(1); 10]), LEAST);
        assert_eq!(typical(Vec::new()), LEAST);
    }
}
