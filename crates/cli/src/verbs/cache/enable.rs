//! `eke cache enable` and `eke cache disable`: mount a cache at every boot, or no longer.

use std::path::{Path, PathBuf};

use eke_apply::boot::cache_mount::{self, CacheAtBoot, CachePlan, EnabledCache, MountedBy};
use eke_cache_mounts::mounts;
use eke_cache_mounts::settings::{Compress, DEFAULT, Memory, PassthroughMode};
use eke_cache_mounts::shared::{BANDWIDTH, SharedSettings};
use eke_linux::parse::mountinfo;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;

use super::{checks, dead, mount, place, umount};
use crate::args::CacheServed;
use crate::show::cache::shown;
use crate::verbs::{Context, files};

/// Types of network file systems, as systemd knows them (`fstype_is_network` in src/basic/mountpoint-util.c).
const REMOTE: [&str; 18] = [
    "afs",
    "ceph",
    "cifs",
    "smb3",
    "smbfs",
    "sshfs",
    "ncpfs",
    "ncp",
    "nfs",
    "nfs4",
    "gfs",
    "gfs2",
    "glusterfs",
    "pvfs2",
    "ocfs2",
    "lustre",
    "davfs",
    "9p",
];

/// Mounts it now and at every boot.
pub fn enable(context: &Context, options: &CacheServed) -> Outcome {
    context.need_root("`eke cache enable` installs a unit or a line in /etc/fstab, which needs root")?;
    dead::remove(options.place.as_ref().unwrap_or(&options.dir))?;
    let dir = checks::directory(&options.dir)?;
    let place = options.place.as_deref().map_or(Ok(dir.clone()), checks::directory)?;
    let spill = options.spill.as_deref().map(checks::spill_directory).transpose()?;
    let spill = spill.as_deref().map(text).transpose()?;
    let cache = CacheAtBoot {
        dir: text(&dir)?,
        place: text(&place)?,
        options: words(options, spill.as_deref(), mount::shared(&options.shared)?.as_ref()),
        needs: spill.into_iter().collect(),
        is_remote: is_remote(&dir)?,
    };
    let plan = cache_mount::changes(&context.root, &super::super::enable::bin_dir()?, &cache)?;
    let written = cache_mount::write(&context.root, &plan)?;
    let mounted = mount_now(context, options, &plan, &place);
    if mounted.is_err() {
        cache_mount::undo(&context.root, &cache.place)?;
    }
    let was_mounted = mounted?;
    files::show_written(&written);
    let by = plan.by.name();
    let now = if was_mounted { "It is mounted already, and from now on" } else { "It is mounted now, and" };
    putln!("{now} at every boot by {by} ({}).", plan.evidence);
    putln!("  undo     eke cache disable {}", shown(&place));
    Ok(Status::Done)
}

/// Mounts it unless it is mounted. Returns whether it was.
fn mount_now(context: &Context, options: &CacheServed, plan: &CachePlan, place: &Path) -> Outcome<bool> {
    if mounts::at(&place::all()?, place).is_some() {
        return Ok(true);
    }
    match &plan.by {
        MountedBy::Unit(unit) => cache_mount::start(&context.root, unit).map_err(|e| {
            Failure::new(Status::Failed, format!("{e}; nothing was changed"))
                .hint(format!("`journalctl -u '{unit}' -n 20` shows why"))
        })?,
        MountedBy::Fstab => drop(mount::background(context, options)?),
    }
    Ok(false)
}

/// Unmounts it, and mounts it at boot no longer. Without a path, all that are.
pub fn disable(context: &Context, path: Option<&Path>) -> Outcome {
    context.need_root("`eke cache disable` removes a unit or a line in /etc/fstab, which needs root")?;
    let all = cache_mount::enabled(&context.root)?;
    let asked: Vec<EnabledCache> = match path {
        None => all,
        Some(path) => all.into_iter().filter(|cache| is_at(cache, path)).collect(),
    };
    if asked.is_empty() {
        let what = path.map_or("anywhere".to_owned(), |path| format!("at {}", shown(path)));
        putln!("No cache is mounted {what} at boot.");
    }
    for cache in asked {
        let place = PathBuf::from(&cache.place);
        // First, because a cache that is in use is refused, and then nothing has changed.
        if mounts::at(&place::all()?, &place).is_some() {
            umount::run(context, &place, false)?;
        }
        if let Some(undone) = cache_mount::undo(&context.root, &cache.place)? {
            files::show_undone(&undone);
        }
        putln!("No cache is mounted at {} at boot any more.", shown(&place));
    }
    Ok(Status::Done)
}

/// Is this its mount point? A cache over a directory that is gone has no real path any more.
fn is_at(cache: &EnabledCache, path: &Path) -> bool {
    let is = |path: &Path| path == Path::new(&cache.place);
    std::path::absolute(path).is_ok_and(|path| is(&path)) || path.canonicalize().is_ok_and(|path| is(&path))
}

fn text(path: &Path) -> Outcome<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let why = "its name is not UTF-8, which neither a unit nor /etc/fstab can have";
        Failure::new(Status::Failed, format!("cannot mount {} at boot: {why}", shown(path)))
            .hint("`eke cache mount` mounts it until the next boot")
    })
}

fn is_remote(dir: &Path) -> Outcome<bool> {
    let all = mountinfo::parse(&std::fs::read("/proc/self/mountinfo")?);
    let kind = mountinfo::mount_of(dir, &all).map_or("", |mount| mount.kind.as_str());
    Ok(REMOTE.contains(&kind.strip_prefix("fuse.").unwrap_or(kind)))
}

/// The options that are not the default, without dashes. `spill` is the directory's real path.
fn words(options: &CacheServed, spill: Option<&str>, shared: Option<&SharedSettings>) -> Vec<String> {
    let memory = match options.memory {
        memory if memory == DEFAULT => None,
        Memory::Percent(share) => Some(format!("memory={share}%")),
        Memory::Bytes(bytes) => Some(format!("memory={}", bytes.0)),
    };
    let passthrough = match options.passthrough.into() {
        PassthroughMode::Auto => None,
        PassthroughMode::Never => Some("passthrough=never".to_owned()),
        PassthroughMode::Always => Some("passthrough=always".to_owned()),
    };
    let sync = Compress::from(options.compress) == Compress::Sync;
    let flags = [
        (sync, "compress=sync"),
        (options.no_allow_other, "no-allow-other"),
        (!options.watch, "no-watch"),
        (!options.remember, "no-remember"),
        (options.keep_mounted, "keep-mounted"),
        (options.force, "force"),
    ];
    let names = (options.names != 1).then(|| format!("names={}", options.names));
    let flags = flags.iter().filter(|(on, _)| *on).map(|(_, word)| (*word).to_owned());
    let sizes = [("spill-size", options.spill_size), ("spill-day", options.spill_day)];
    let sizes = sizes.into_iter().filter_map(|(name, size)| Some(format!("{name}={}", size?.0)));
    let spill = spill.map(|dir| format!("spill={dir}")).into_iter().chain(sizes);
    let shared = shared.map(shared_words).unwrap_or_default();
    memory.into_iter().chain(passthrough).chain(names).chain(spill).chain(shared).chain(flags).collect()
}

/// The options of a shared tier. A comma separates options in `/etc/fstab`, so hosts are separated by semicolons.
fn shared_words(shared: &SharedSettings) -> Vec<String> {
    let file = |path: &Option<PathBuf>| path.as_ref().and_then(|path| path.to_str()).map(str::to_owned);
    let rate = (shared.bandwidth != BANDWIDTH).then(|| shared.bandwidth.0.to_string());
    let all = [
        ("shared-url", Some(shared.url.replace(',', ";"))),
        ("shared-name", shared.name.clone()),
        ("shared-password", file(&shared.password)),
        ("shared-ca", file(&shared.ca)),
        ("shared-cert", file(&shared.cert)),
        ("shared-key", file(&shared.private_key)),
        ("shared-rate", rate),
        ("encrypt", file(&shared.key)),
    ];
    all.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?))).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Cache, Verb};

    fn of(line: &str) -> Vec<String> {
        let words_of = ["eke", "cache", "enable", "/srv"].into_iter().chain(line.split_whitespace());
        let args = Args::try_parse_from(words_of).unwrap();
        let Some(Verb::Cache(Cache::Enable(options))) = args.verb else { panic!("another verb") };
        let shared = mount::shared(&options.shared).unwrap();
        words(&options, options.spill.as_deref().and_then(Path::to_str), shared.as_ref())
    }

    #[test]
    fn only_what_differs_from_the_default_is_written() {
        assert_eq!(of(""), Vec::<String>::new());
        let line = "--memory 2G --compress sync --passthrough never --names 60 --no-watch --no-remember --force --no-allow-other";
        let words = "memory=2147483648 passthrough=never names=60 compress=sync no-allow-other no-watch no-remember force";
        assert_eq!(of(line).join(" "), words);
        let again: Vec<String> = of(line).iter().map(|word| format!("--{word}")).collect();
        assert_eq!(of(&again.join(" ")), of(line), "the unit's command means the same");
        assert_eq!(of("--memory 40%"), ["memory=40%"]);
        let spill = of("--spill /mnt/ssd/a-b --spill-day 1G");
        assert_eq!(spill, ["spill=/mnt/ssd/a-b", "spill-day=1073741824"]);
        let line = "--shared redis+cluster://a,b --shared-name web --shared-ca /dev/null --shared-cert /dev/null --shared-key /dev/null";
        let shared = of(line);
        let words = "shared-url=redis+cluster://a;b shared-name=web shared-ca=/dev/null shared-cert=/dev/null shared-key=/dev/null";
        assert_eq!(shared.join(" "), words);
        let again: Vec<String> = shared.iter().map(|word| format!("--{word}")).collect();
        assert_eq!(of(&again.join(" ")), shared);
    }
}
