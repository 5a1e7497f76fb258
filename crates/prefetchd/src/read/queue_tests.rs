use std::sync::Arc;

use super::*;
use crate::read::{MountedRequest, Piece};
use crate::request::ReadRequest;
use eke_prefetch_disk::backing::{Backing, Storage};
use eke_prefetch_disk::decide;
use eke_prefetch_model::file_set::{Kind, Stamp};
use eke_prefetch_model::pages::Pages;

/// Three requests, the last of which is on another mount.
fn queue(jobs: Vec<Job>) -> JobQueue {
    queue_of(jobs, false)
}

fn queue_of(jobs: Vec<Job>, in_order: bool) -> JobQueue {
    let backing = Backing {
        dev: 1,
        file_system: "nfs".into(),
        through: Vec::new(),
        own: None,
        storage: Storage::Network,
        cached_between: false,
    };
    let on = |mount, path: &str| MountedRequest {
        mount,
        request: ReadRequest {
            path: path.into(),
            kind: Kind::File,
            stamp: Stamp::default(),
            pages: Pages::default(),
            user: 0,
            is_own: false,
        },
    };
    let device =
        DeviceQueue { profile: decide(backing, None), requests: vec![on(1, "/a"), on(1, "/b"), on(2, "/c")] };
    let queue = JobQueue::new(device, Gate::Open, in_order);
    queue.add(jobs, true);
    queue
}

fn read(request: usize) -> Job {
    Job::Read(Piece { request, offset: 0, bytes: 4096 })
}

fn gone(changed: bool) -> Outcome {
    Outcome::Refused(Refusal { why: "it is gone".into(), changed, is_gone: true })
}

#[test]
fn jobs_are_given_out_in_order_and_then_take_returns_none() {
    let queue = queue(vec![read(0), read(2)]);
    assert_eq!((queue.take(1), queue.take(2), queue.take(3)), (Some(read(0)), Some(read(2)), None));
    assert_eq!(queue.status().busy, 2);
    assert!(queue.done(1, read(0), Outcome::Read { fetched: 4096, resident: 0 }));
    assert_eq!((queue.status().busy, queue.report().fetched_bytes), (1, 4096));
}

#[test]
fn in_order_a_read_is_given_out_after_the_previous_was_submitted_or_took_too_long() {
    let queue = Arc::new(queue_of(vec![Job::Locate(0), Job::Locate(1), read(0), read(1), read(2)], true));
    assert_eq!((queue.take(1), queue.take(2)), (Some(Job::Locate(0)), Some(Job::Locate(1))));
    assert_eq!(queue.take(3), Some(read(0)));
    let second = {
        let queue = Arc::clone(&queue);
        std::thread::spawn(move || queue.take(4))
    };
    queue.submitted(1);
    queue.submitted(3);
    assert_eq!(second.join().unwrap(), Some(read(1)));
    // 4 never submits: its time runs out, and its late report does not end the submission of 5.
    assert_eq!(queue.take(5), Some(read(2)));
    queue.submitted(4);
    assert_eq!(queue.state().submitting.map(|(of, _)| of), Some(5));
    assert!(queue.done(5, read(2), Outcome::Read { fetched: 0, resident: 4096 }));
    assert_eq!(queue.state().submitting, None);
}

#[test]
fn a_refused_request_is_not_tried_again() {
    let queue = queue(vec![read(0), read(0), read(2)]);
    queue.take(1);
    assert!(queue.done(1, read(0), gone(true)));
    assert_eq!(queue.take(1), Some(read(2)));
    let report = queue.report();
    assert_eq!((report.left_bytes, report.failed), (2 * 4096, 1));
    assert_eq!((report.changed, report.gone), (vec!["/a".into()], vec![PathBuf::from("/a")]));
}

#[test]
fn what_cannot_be_read_and_has_not_changed_does_not_make_a_fetch_incomplete() {
    for (changed, is_whole) in [(false, true), (true, false)] {
        let queue = queue(vec![read(0), read(0), read(2)]);
        queue.take(1);
        queue.done(1, read(0), gone(changed));
        assert_eq!(queue.take(1), Some(read(2)));
        queue.done(1, read(2), Outcome::Read { fetched: 4096, resident: 0 });
        queue.end(FetchEnd::Done);
        assert_eq!((queue.report().left_bytes, queue.report().is_whole()), (2 * 4096, is_whole));
    }
}

#[test]
fn a_hanging_worker_is_abandoned_and_its_mount_is_not_used_again() {
    let queue = queue(vec![read(0), read(1), read(2), read(1)]);
    queue.take(1);
    let now = Instant::now();
    assert_eq!(queue.hanging(now, Duration::from_secs(10)), []);
    let later = now + Duration::from_secs(11);
    let hanging = queue.hanging(later, Duration::from_secs(10));
    assert_eq!(hanging, [Hanging { worker: 1, request: 0 }]);
    assert!(queue.abandon(&hanging[0], "hangs".into()));
    assert!(!queue.abandon(&hanging[0], "hangs".into()), "once");
    assert_eq!((queue.take(2), queue.take(2)), (Some(read(2)), None));
    queue.add(vec![read(1)], true);
    assert_eq!(queue.take(2), None, "nor later");
    assert_eq!(queue.report().left_bytes, 4 * 4096);
    assert!(!queue.done(1, read(0), Outcome::Listed), "it came back, and is not needed");
    assert_eq!(queue.report().directories, 0);
}

#[test]
fn a_shut_gate_holds_workers_and_a_closed_one_sends_them_home() {
    let queue = Arc::new(queue(vec![read(0), read(2)]));
    queue.set(Gate::Shut);
    let worker = Arc::clone(&queue);
    let thread = std::thread::spawn(move || (worker.take(1), worker.take(1)));
    queue.set(Gate::Open);
    assert_eq!(thread.join().unwrap(), (Some(read(0)), Some(read(2))));
    queue.end(FetchEnd::Stopped);
    queue.set(Gate::Open);
    queue.add(vec![read(2)], true);
    assert_eq!(queue.take(2), None);
    assert_eq!(queue.report().ended, Some(FetchEnd::Stopped));
}

#[test]
fn too_many_errors_are_too_many() {
    let queue = queue(Vec::new());
    for _ in 0..MOST_ERRORS {
        assert!(!queue.status().fails);
        let failed = Outcome::Failed { why: "EIO".into(), fetched: 0, resident: 0, left: 4096 };
        queue.done(1, read(0), failed);
    }
    assert!(queue.status().fails);
    queue.add(vec![read(0)], false);
    assert_eq!(queue.take(2), None, "before the driver ends it");
}

/// A queue of so many reads of 64 KiB, with a pace.
fn paced(reads: usize, pace: Pace) -> JobQueue {
    let read = |at: usize| Job::Read(Piece { request: 0, offset: (at as u64) << 16, bytes: 1 << 16 });
    let queue = queue((0..reads).map(read).collect());
    queue.set_pace(pace);
    queue
}

/// Whether a worker may take a job now.
fn is_let_in(queue: &JobQueue) -> bool {
    queue.state().waits_for(false, Instant::now()).is_none()
}

fn finish(queue: &JobQueue, worker: Number, job: Job) {
    assert!(queue.done(worker, job, Outcome::Read { fetched: job.bytes(), resident: 0 }));
}

#[test]
fn a_batch_begins_when_the_one_before_is_done() {
    let pace = Pace { batch: 2, read_bytes: 1 << 20, gap_percent: 0 };
    let queue = paced(5, pace);
    let first = [1, 2].map(|worker| (worker, queue.take(worker).unwrap()));
    assert!(!is_let_in(&queue));
    finish(&queue, first[0].0, first[0].1);
    assert!(!is_let_in(&queue), "one is in flight");
    finish(&queue, first[1].0, first[1].1);
    assert!(is_let_in(&queue));
    queue.set_pace(Pace::FREE);
    assert_eq!([1, 2, 3].map(|worker| queue.take(worker).is_some()), [true; 3]);
}

#[test]
fn after_a_batch_the_disk_is_left_alone_for_a_part_of_its_time() {
    let pace = Pace { batch: 1, read_bytes: 1 << 20, gap_percent: 50 };
    let (began, now) = (Instant::now(), Instant::now() + Duration::from_secs(40));
    let batch = Batch { began, done: began + Duration::from_secs(40), taken: 1 };
    assert_eq!(batch.next_at(pace) - began, Duration::from_secs(60));
    let queue = paced(3, pace);
    queue.state().batch = batch;
    let wait = |now| queue.state().waits_for(false, now).map(|wait| wait.as_secs());
    let after = now + Duration::from_secs(30);
    assert_eq!((wait(now).is_some_and(|s| (18..=20).contains(&s)), wait(after)), (true, None));
}

#[test]
fn beside_others_a_read_is_cut_and_its_rest_comes_next() {
    let queue = paced(2, Pace { batch: 9, read_bytes: 24 << 10, gap_percent: 0 });
    let piece = |offset, kib: u64| Job::Read(Piece { request: 0, offset, bytes: kib << 10 });
    let taken: Vec<Option<Job>> = (1..=3).map(|worker| queue.take(worker)).collect();
    assert_eq!(taken, [Some(piece(0, 24)), Some(piece(24 << 10, 24)), Some(piece(48 << 10, 16))]);
    queue.set_pace(Pace::FREE);
    assert_eq!(queue.take(4), Some(piece(64 << 10, 64)));
}
