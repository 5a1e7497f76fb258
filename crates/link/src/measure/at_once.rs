//! Runs several closures at once.

use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Runs `go` on all of them at the same time. Returns the time from the first start to the last end.
///
/// # Errors
/// The error of one of them.
pub(super) fn at_once<T: Send, E: Send>(
    all: &mut [T],
    go: impl Fn(&mut T) -> Result<(), E> + Sync,
) -> Result<Duration, E> {
    let barrier = Barrier::new(all.len());
    let run = |one: &mut T| {
        barrier.wait();
        let start = Instant::now();
        go(one).map(|()| (start, Instant::now()))
    };
    let times: Result<Vec<(Instant, Instant)>, E> = std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = all.iter_mut().map(|one| scope.spawn(move || run(one))).collect();
        threads.into_iter().filter_map(|t| t.join().ok()).collect()
    });
    let times = times?;
    let first = times.iter().map(|t| t.0).min();
    let last = times.iter().map(|t| t.1).max();
    Ok(first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first))
}
