//! Settings that a result depends on: of the kernel, of disks, of mounts and of eke. Every report has them in its provenance.
//!
//! A process runs one experiment, so what is noted is the process's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use eke_linux::Root;
use eke_slow_disk::Profile;
use rustix::fs::{major, minor};

static NOTED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// Notes a setting; of the same name, the last value and those before it stay.
pub fn note(name: &str, value: &str) {
    let mut noted = noted();
    let known = noted.entry(name.to_owned()).or_default();
    if !known.split(" | ").any(|before| before == value) {
        *known = if known.is_empty() { value.to_owned() } else { format!("{known} | {value}") };
    }
}

/// All settings: those of the kernel below `root`, those of the disk with the directory `cache`, and what was noted.
pub fn all(root: &Root, cache: &Path) -> BTreeMap<String, String> {
    let mut all = kernel(root);
    all.extend(own_disk(root, cache));
    all.extend(noted().clone());
    all
}

/// Notes a slow disk: its profile, and what the kernel does with its block device.
pub fn note_disk(root: &Root, profile: &Profile, device: &Path, image: &Path) {
    let of = |what: &str| format!("disk {}: {what}", profile.name);
    note(&of("profile"), &timing(profile));
    note(&of("image"), &image.file_name().unwrap_or_default().to_string_lossy());
    let queue = Path::new("sys/block").join(device.file_name().unwrap_or_default()).join("queue");
    queue_settings(root, &queue).into_iter().for_each(|(name, value)| note(&of(name), &value));
}

/// Notes the read-ahead of the file system that is mounted there; file systems set their own.
pub fn note_mount(root: &Root, file_system: &str, dir: &Path) {
    let Ok(stat) = rustix::fs::stat(dir) else { return };
    let of = format!("sys/class/bdi/{}:{}/read_ahead_kb", major(stat.st_dev), minor(stat.st_dev));
    if let Some(kib) = line(root, Path::new(&of)) {
        note(&format!("mount of {file_system}: read_ahead_kb"), &kib);
    }
}

fn noted() -> MutexGuard<'static, BTreeMap<String, String>> {
    // Text that a panicking thread was adding is no danger.
    NOTED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kernel(root: &Root) -> BTreeMap<String, String> {
    const FILES: [(&str, &str); 4] = [
        ("transparent_hugepage", "sys/kernel/mm/transparent_hugepage/enabled"),
        ("vm.swappiness", "proc/sys/vm/swappiness"),
        ("vm.page-cluster", "proc/sys/vm/page-cluster"),
        ("lru_gen", "sys/kernel/mm/lru_gen/enabled"),
    ];
    let read = |(name, path): (&str, &str)| Some((name.to_owned(), chosen(&line(root, Path::new(path))?)));
    FILES.into_iter().filter_map(read).collect()
}

/// The disk of this machine that has the directory; nothing for a file system without a block device.
fn own_disk(root: &Root, dir: &Path) -> BTreeMap<String, String> {
    let nearest = dir.ancestors().find_map(|dir| rustix::fs::stat(dir).ok());
    let Some(stat) = nearest else { return BTreeMap::new() };
    let device = PathBuf::from(format!("sys/dev/block/{}:{}", major(stat.st_dev), minor(stat.st_dev)));
    // A partition has the queue of its disk.
    let queues = [device.join("queue"), device.join("../queue")];
    let settings = queues.iter().map(|queue| queue_settings(root, queue)).find(|found| !found.is_empty());
    let named = |(name, value)| (format!("this machine's own disk: {name}"), value);
    settings.unwrap_or_default().into_iter().map(named).collect()
}

fn queue_settings(root: &Root, queue: &Path) -> Vec<(&'static str, String)> {
    let read = |name: &'static str| Some((name, chosen(&line(root, &queue.join(name))?)));
    ["scheduler", "read_ahead_kb", "rotational", "nr_requests"].into_iter().filter_map(read).collect()
}

fn line(root: &Root, path: &Path) -> Option<String> {
    Some(root.read(path).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}

/// `mq-deadline` of `none [mq-deadline] bfq`; other text as it is.
fn chosen(text: &str) -> String {
    let inner = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    inner.unwrap_or(text).to_owned()
}

/// `44 MB/s, rotation 6 ms, seeks 0.5 to 5.2 ms, depth 1`.
fn timing(profile: &Profile) -> String {
    let ms = |seconds: f64| format!("{:.2} ms", 1e3 * seconds);
    let mut parts = vec![format!("{} MB/s", profile.rate / 1_000_000)];
    parts.extend(profile.iops.map(|iops| format!("{iops} IOPS at most")));
    if let Some(head) = &profile.head {
        let longest = head.settle.seconds() + head.stroke.seconds();
        let (rotation, shortest) = (ms(head.rotation.seconds()), ms(head.settle.seconds()));
        parts.push(format!("rotation {rotation}, seeks {shortest} to {}", ms(longest)));
    }
    if profile.latency.0 > 0 {
        parts.push(format!("latency {}", ms(profile.latency.seconds())));
    }
    parts.push(format!("depth {}", profile.depth));
    parts.extend(profile.orders.then(|| "orders requests itself and caches writes".to_owned()));
    // With a scheduler, nr_requests shows the scheduler's own.
    parts.extend(profile.host.queue.map(|queue| format!("{queue} requests at once")));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_in_numbers() {
        assert_eq!(timing(&Profile::sd()), "40 MB/s, 2000 IOPS at most, depth 1");
        assert_eq!(timing(&Profile::nfs1g()), "125 MB/s, latency 0.50 ms, depth 16");
        let ncq = Profile::named("laptop+ncq").map(|profile| timing(&profile)).unwrap_or_default();
        assert!(
            ncq.ends_with("depth 1, orders requests itself and caches writes, 32 requests at once"),
            "{ncq}"
        );
        let rotating = timing(&Profile::scsi2008());
        assert!(rotating.starts_with("44 MB/s, rotation 6.00 ms, seeks ") && rotating.ends_with("depth 1"));
    }

    #[test]
    fn of_several_choices_the_one_in_force_is_kept() {
        assert_eq!(chosen("none [mq-deadline] bfq"), "mq-deadline");
        assert_eq!(chosen("128"), "128");
    }

    #[test]
    fn what_changes_between_runs_has_all_its_values() {
        for value in ["128", "2560", "128"] {
            note("a test's mount: read_ahead_kb", value);
        }
        assert_eq!(noted()["a test's mount: read_ahead_kb"], "128 | 2560");
    }

    #[test]
    fn the_kernels_settings_are_read_and_missing_ones_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &[u8]| {
            let file = dir.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            let opened = std::fs::OpenOptions::new().write(true).create_new(true).open(file);
            std::io::Write::write_all(&mut opened.unwrap(), text).unwrap();
        };
        write("proc/sys/vm/swappiness", b"60\n");
        write("sys/kernel/mm/transparent_hugepage/enabled", b"always [madvise] never\n");
        let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [of("transparent_hugepage", "madvise"), of("vm.swappiness", "60")];
        assert_eq!(kernel(&Root::at(dir.path())).into_iter().collect::<Vec<_>>(), expected);
        write("sys/block/ublkb0/queue/scheduler", b"[none] mq-deadline\n");
        let queue = queue_settings(&Root::at(dir.path()), Path::new("sys/block/ublkb0/queue"));
        assert_eq!(queue, [("scheduler", "none".to_owned())]);
    }
}
