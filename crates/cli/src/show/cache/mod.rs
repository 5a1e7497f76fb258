//! Compressed page caches as text.

use std::fmt::Write as _;
use std::path::Path;

use eke_cache_mounts::status::Status;
use eke_client::{Cache, CacheState};
use eke_model::shell::word;
use eke_model::text::one_line;

use crate::documents::{CacheAtBoot, CacheStatus};

mod done;
mod serving;
mod shared;
mod spill;

pub use done::{busy, unmounted, warmed, warming};
use serving::serving;

/// A path for a terminal, with control characters escaped: any user can mount, and choose the name.
trait Shown {
    fn shown(&self) -> String;
}

impl Shown for Path {
    fn shown(&self) -> String {
        one_line(&self.display().to_string()).into_owned()
    }
}

/// A path for a terminal, for other modules.
pub fn shown(path: &Path) -> String {
    path.shown()
}

/// `eke cache status`.
pub fn status(document: &CacheStatus) -> String {
    let mut parts: Vec<String> = document
        .caches
        .iter()
        .map(|cache| one(cache) + &at_boot(document.at_boot.iter().find(|known| known.place == cache.place)))
        .collect();
    if parts.is_empty() {
        parts.push("No compressed page cache is mounted. `eke cache mount DIR` mounts one.\n".into());
    }
    let is_mounted = |known: &&CacheAtBoot| document.caches.iter().any(|cache| cache.place == known.place);
    parts.extend(document.at_boot.iter().filter(|known| !is_mounted(known)).map(not_now));
    parts.join("\n")
}

fn at_boot(known: Option<&CacheAtBoot>) -> String {
    let mut out = String::new();
    if let Some(known) = known {
        let changed = if known.stands { "" } else { "; somebody changed what eke wrote" };
        row(&mut out, "at boot", &format!("mounted by {}{changed}", by(known)));
    }
    out
}

fn by(known: &CacheAtBoot) -> String {
    known.unit.as_ref().map_or("/etc/fstab".into(), |unit| format!("systemd ({unit})"))
}

/// A cache that should be mounted and is not.
fn not_now(known: &CacheAtBoot) -> String {
    let place = known.place.shown();
    let why = match &known.unit {
        Some(unit) => format!("`systemctl status '{unit}'` shows why"),
        None => format!("`mount {}` mounts it", word(&place)),
    };
    format!("{place} is mounted at every boot by {}, but not now: {why}.\n", by(known))
}

/// A line of `eke status` and of `eke` for each cache.
pub fn lines(caches: &[Cache]) -> String {
    caches.iter().map(|c| format!("cache       {}: {}\n", c.place.shown(), short(c))).collect()
}

/// The cache's size and hit rate, or why they are not known.
pub fn short(cache: &Cache) -> String {
    let Some(details) = &cache.details else { return state(cache) };
    if let Some(aside) = &details.aside {
        return format!("stands aside: {}", aside.why);
    }
    let Some(stats) = &details.worker else { return no_worker(details) };
    let store = &stats.store;
    let hits = store.hit_rate.map_or("nothing read yet".into(), |r| format!("{:.1} % hits", 100.0 * r));
    format!("{} of files in {} of memory, {hits}", store.raw, store.held)
}

fn state(cache: &Cache) -> String {
    let why = cache.why.as_deref().unwrap_or("no reason is known");
    match cache.state {
        CacheState::Serving => "serves".into(),
        CacheState::Dead => {
            format!(
                "dead, {why}; `eke cache umount {}` uncovers the backing directory",
                word(&cache.place.shown())
            )
        }
        CacheState::Silent => format!("silent, {why}"),
        CacheState::NotYours if cache.uid == 0 => format!("of root; {why}"),
        CacheState::NotYours => format!("of user {}; {why}", cache.uid),
    }
}

fn no_worker(s: &Status) -> String {
    match s.worker_pid {
        Some(pid) => format!("none: the worker {pid} does not answer"),
        None => "none: a new worker is being started".into(),
    }
}

fn one(cache: &Cache) -> String {
    let mut out = cache.place.shown();
    if cache.place == cache.dir {
        out += " (over itself)\n";
    } else {
        let _ = writeln!(out, " (of {})", cache.dir.shown());
    }
    match &cache.details {
        None => row(&mut out, "state", &state(cache)),
        Some(details) => serving(&mut out, details),
    }
    out
}

fn row(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "  {name:<10} {}", one_line(text));
}

#[cfg(test)]
mod tests {
    use eke_cache_mounts::holders::Holder;
    use eke_cache_mounts::settings::{Compress, Memory, PassthroughMode, Settings};
    use eke_cache_mounts::shared::SharedStats;
    use eke_cache_mounts::spill::SpillStats;
    use eke_cache_mounts::status::{
        AdmissionStats, FilesStats, NotServed, RememberState, RememberStats, SizeStats, StoreStats,
        TierStats, WarmProgress, WatchStats, WorkerStats,
    };
    use eke_model::units::{Bytes, Nanos};

    use super::serving::remember;
    use super::*;
    use crate::documents::WarmedPath;

    fn stats() -> WorkerStats {
        WorkerStats {
            store: StoreStats {
                limit: Bytes::mib(400),
                held: Bytes::mib(310),
                queued: Bytes::mib(2),
                raw: Bytes::mib(812),
                ratio: Some(2.62),
                hit_rate: Some(0.921),
                fast: 9_000,
                recompressed: 3_800,
                zero: 192,
                hits: 92_100,
                misses: 7_900,
                incompressible: 40,
                evictions: 12,
                ..StoreStats::default()
            },
            tier: TierStats {
                from_store: Bytes::mib(5_800),
                from_backing: Bytes::mib(494),
                written: Bytes(8192),
                store_cost_ns: Some(Nanos(21_300)),
                backing_cost_ns: Some(Nanos(5_200_000)),
                ..TierStats::default()
            },
            admission: AdmissionStats {
                admitted: 310,
                declined: 2,
                no_passthrough: Some("only root may (CAP_SYS_ADMIN)".into()),
                reasons: vec!["film.mp4 is not taken in: 12 of 12 blocks do not compress".into()],
                ..AdmissionStats::default()
            },
            size: SizeStats {
                now: Bytes::mib(400),
                last_reason: Some("shrank from 600 MiB: 90 MiB of RAM were available".into()),
                last_s: Some(150),
                ..SizeStats::default()
            },
            files: FilesStats {
                known: 12_345,
                tables: Bytes::mib(4),
                ledger: Bytes::mib(2),
                descriptors: 512,
                memory: Bytes::mib(7),
            },
            remember: RememberStats {
                state: RememberState::Waiting,
                listed: Bytes::mib(300),
                done: Bytes::mib(120),
                ..RememberStats::default()
            },
            watch: WatchStats { why: Some("only root may (CAP_SYS_ADMIN)".into()), ..WatchStats::default() },
            spill: SpillStats::default(),
            shared: SharedStats::default(),
            not_served: vec![NotServed {
                place: "/srv/www/up\u{1b}load".into(),
                why: "it is nosuid, nodev, and this cache's mount is not".into(),
            }],
        }
    }

    fn serving() -> Cache {
        let settings = Settings {
            dir: "/srv/www".into(),
            place: "/srv/www".into(),
            memory: Memory::Percent(25),
            compress: Compress::Async,
            others: true,
            passthrough: PassthroughMode::Auto,
            watch: true,
            names_s: 1,
            keep_mounted: false,
            remember: true,
            spill: None,
            shared: None,
        };
        let details = Status {
            place: settings.place.clone(),
            dir: settings.dir.clone(),
            uid: 0,
            pid: 100,
            worker_pid: Some(101),
            restarts: 1,
            last_death: Some("it was killed by signal 9".into()),
            up_s: 7300,
            aside: None,
            not_moved: None,
            settings,
            worker: Some(stats()),
        };
        Cache {
            pid: Some(100),
            worker_pid: Some(101),
            details: Some(details.into()),
            ..bare(CacheState::Serving)
        }
    }

    fn bare(state: CacheState) -> Cache {
        Cache {
            place: "/srv/www".into(),
            dir: "/srv/www".into(),
            uid: 1000,
            state,
            why: Some("no supervisor answers: it was killed".into()),
            pid: None,
            worker_pid: None,
            details: None,
        }
    }

    #[test]
    fn a_busy_cache_reads_well() {
        let young = {
            let mut cache = serving();
            if let Some(details) = &mut cache.details {
                details.worker = Some(WorkerStats::default());
                details.restarts = 0;
                details.place = "/mnt/fast".into();
            }
            Cache { place: "/mnt/fast".into(), ..cache }
        };
        let at_boot = |place: &str, unit: Option<&str>, stands| CacheAtBoot {
            place: place.into(),
            unit: unit.map(str::to_owned),
            stands,
        };
        let at_boot = vec![
            at_boot("/srv/www", Some("eke-cache-srv-www.service"), true),
            at_boot("/mnt/fast", None, false),
            at_boot("/mnt/gone", Some("eke-cache-mnt-gone.service"), true),
        ];
        let document = CacheStatus { caches: vec![serving(), young], at_boot };
        insta::assert_snapshot!(status(&document));
        insta::assert_snapshot!("as_lines", lines(&[serving(), bare(CacheState::Dead)]));
    }

    #[test]
    fn what_was_warmed_is_said_plainly() {
        let whole = WarmProgress {
            surveyed: true,
            files: 12,
            bytes: Bytes::mib(20),
            files_done: 12,
            passed: Bytes::mib(20),
            read: Bytes::mib(18),
            kept: Bytes::mib(20),
            taken: Bytes::mib(7),
            ..WarmProgress::default()
        };
        let part = WarmProgress {
            full: true,
            files_done: 4,
            kept: Bytes::mib(6),
            incompressible: Bytes::mib(3),
            failed: 2,
            first_error: Some("a\u{1b}b: Permission denied (os error 13)".into()),
            ..whole.clone()
        };
        let path = |progress| WarmedPath {
            path: "/srv/www".into(),
            place: "/srv/www".into(),
            seconds: 1.25,
            progress,
        };
        let counting = warming(&WarmProgress { files: 3, ..WarmProgress::default() });
        let text = [counting, warming(&whole), warmed(&path(whole)), warmed(&path(part))].join("\n");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn what_is_remembered_is_said_if_there_is_something() {
        let says = |state, why: Option<&str>, listed| {
            remember(&RememberStats {
                state,
                why: why.map(str::to_owned),
                listed: Bytes::mib(listed),
                done: Bytes::mib(listed / 2),
            })
        };
        assert_eq!(says(RememberState::Off, None, 0), None);
        assert_eq!(says(RememberState::Done, None, 0), None);
        assert_eq!(says(RememberState::Done, None, 8).unwrap(), "8.0 MiB of what was hot were read again");
        assert_eq!(says(RememberState::Reading, None, 8).unwrap(), "4.0 MiB of 8.0 MiB of what was hot");
        assert!(says(RememberState::Full, None, 8).unwrap().ends_with("more does not fit"));
        assert!(says(RememberState::Off, Some("not requested"), 0).unwrap().ends_with("not requested"));
    }

    #[test]
    fn what_does_not_serve_says_why_and_what_to_do() {
        let document = CacheStatus {
            caches: vec![
                bare(CacheState::Dead),
                Cache {
                    why: Some("only its user and root see details".into()),
                    ..bare(CacheState::NotYours)
                },
            ],
            at_boot: Vec::new(),
        };
        insta::assert_snapshot!(status(&document));
    }

    #[test]
    fn who_holds_it_is_named_in_bounds() {
        let holder = |pid| Holder { pid, name: "less".into(), how: "has files open" };
        let place = Path::new("/srv/www");
        assert_eq!(busy(place, &[]), "/srv/www is in use by processes that you cannot see");
        assert_eq!(busy(place, &[holder(7)]), "/srv/www is in use: 7 (less) has files open");
        let many: Vec<Holder> = (1..12).map(holder).collect();
        assert!(busy(place, &many).ends_with("8 (less) has files open, and 3 more"));
    }
}
