//! Plans the changes that make zswap's settings effective from boot on. Reads only.

use super::command::{self, Command};
use super::detect::{Detected, ESPS, Initramfs, Loader, detect};
use super::due::{self, After};
use super::{OWNER, entries, extlinux, grub, initramfs, words};
use crate::files::{self, Change, Content};
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// zswap's settings from boot on; `None` keeps the kernel's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZswapBoot {
    /// The kernel's name of the compressor.
    pub compressor: String,
    /// Largest share of RAM for the pool, in percent.
    pub max_pool_percent: u32,
    /// The pool's allocator (Linux 3.17 to 6.17).
    pub zpool: Option<String>,
    /// Share of the pool, in percent, below which a full pool accepts pages again (Linux 5.6).
    pub accept_threshold_percent: Option<u32>,
    /// Whether the kernel writes cold pages out by itself (Linux 6.8).
    pub shrinker: Option<bool>,
}

impl ZswapBoot {
    /// The words for the kernel command line.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec!["zswap.enabled=1".to_owned(), format!("zswap.compressor={}", self.compressor)];
        words.extend(self.zpool.iter().map(|zpool| format!("zswap.zpool={zpool}")));
        words.push(format!("zswap.max_pool_percent={}", self.max_pool_percent));
        words.extend(self.accept_threshold_percent.map(|n| format!("zswap.accept_threshold_percent={n}")));
        words.extend(self.shrinker.map(|on| format!("zswap.shrinker_enabled={}", u8::from(on))));
        words
    }

    /// The modules that these words need early in the boot.
    pub fn modules(&self) -> Vec<String> {
        std::iter::once(&self.compressor).chain(&self.zpool).cloned().collect()
    }

    fn valid(&self) -> Result<()> {
        let plain = |name: &&String| {
            name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        };
        match std::iter::once(&self.compressor).chain(&self.zpool).find(plain) {
            Some(name) => {
                Err(Error::Refused(format!("\"{name}\" is not the name of a compressor or allocator")))
            }
            None if !(1..=100).contains(&self.max_pool_percent) => Err(Error::Refused(format!(
                "zswap's pool cannot take {} % of RAM: give 1 to 100",
                self.max_pool_percent
            ))),
            None => Ok(()),
        }
    }
}

/// The changes and commands, and what the user has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootPlan {
    /// What the root has.
    pub detected: Detected,
    /// The words for the kernel command line.
    pub words: Vec<String>,
    /// The files.
    pub changes: Vec<Change>,
    /// The commands that put them into effect, in order.
    pub commands: Vec<Command>,
    /// What eke does not do, one sentence each.
    pub notes: Vec<String>,
}

/// Plans the changes that make `zswap` effective from boot on.
///
/// # Errors
/// An invalid setting, or an unreadable file. A file that eke cannot parse is a note.
pub fn changes(root: &Root, zswap: &ZswapBoot) -> Result<BootPlan> {
    zswap.valid()?;
    let (detected, words) = (detect(root), zswap.words());
    let mut plan = BootPlan { detected, words, changes: Vec::new(), commands: Vec::new(), notes: Vec::new() };
    plan.modules(root, &zswap.modules())?;
    plan.command_line(root)?;
    plan.changes.retain(|change| !stands(root, change));
    let paths: Vec<String> = plan.changes.iter().map(|c| c.path.clone()).collect();
    plan.commands = due::with(&commands_for(root, &paths), &due::left(root, OWNER, After::Write));
    let absent = plan.commands.iter().filter(|c| command::find(root, &c.argv[0]).is_none());
    plan.notes.extend(absent.map(|c| format!("`{c}` must run, but {} is not installed here", c.argv[0])));
    Ok(plan)
}

impl BootPlan {
    fn modules(&mut self, root: &Root, modules: &[String]) -> Result<()> {
        let needed = initramfs::needed(root, modules)?;
        self.notes.extend(needed.notes);
        let modules = needed.modules;
        if modules.is_empty() {
            return Ok(());
        }
        match self.detected.initramfs {
            Initramfs::Tools => self.edit_or_create(root, initramfs::INITRAMFS_TOOLS, |text| {
                Ok(initramfs::tools_with_modules(text, &modules))
            }),
            Initramfs::Dracut => {
                self.changes.push(Change::text(initramfs::DRACUT, initramfs::dracut_conf(&modules)));
                Ok(())
            }
            Initramfs::Mkinitcpio if root.exists(initramfs::MKINITCPIO_DROP_INS) => {
                self.changes
                    .push(Change::text(initramfs::MKINITCPIO_DROP_IN, initramfs::mkinitcpio_conf(&modules)));
                Ok(())
            }
            Initramfs::Mkinitcpio => self
                .edit(root, initramfs::MKINITCPIO, |text| initramfs::mkinitcpio_with_modules(text, &modules)),
            Initramfs::Unknown => {
                let modules = modules.join(", ");
                self.notes.push(format!("no known initramfs generator was found; if there is an initramfs, it must contain: {modules}"));
                Ok(())
            }
        }
    }

    fn command_line(&mut self, root: &Root) -> Result<()> {
        let words = self.words.clone();
        match self.detected.loader {
            Loader::Grub => self.grub(root)?,
            Loader::SystemdBoot => {}
            Loader::Extlinux if command::find(root, "u-boot-update").is_some() => {
                self.edit_or_create(root, extlinux::DEFAULTS, |text| {
                    extlinux::defaults_with_words(text, &words)
                })?;
            }
            Loader::Extlinux => self.edit(root, extlinux::FILE, |text| extlinux::with_words(text, &words))?,
            Loader::RaspberryPi(file) => {
                self.edit(root, file, |text| extlinux::firmware_with_words(text, &words))?
            }
            Loader::Elsewhere(advice) => self.notes.push(format!("{advice}: {}", words.join(" "))),
            Loader::Unknown => self.by_hand("no known boot loader was found"),
        }
        match self.detected.loader {
            Loader::Grub | Loader::SystemdBoot => self.entries(root),
            _ => Ok(()),
        }
    }

    fn by_hand(&mut self, why: &str) {
        self.notes.push(format!(
            "{why}; add these words to the kernel command line by hand: {}",
            self.words.join(" ")
        ));
    }

    /// Replaces words in place, and puts the missing ones into a drop-in if this GRUB reads drop-ins.
    fn grub(&mut self, root: &Root) -> Result<()> {
        let words = self.words.clone();
        if !reads_drop_ins(root) {
            return self.edit(root, grub::FILE, |text| grub::with_words(text, &words));
        }
        let names = root.list(grub::DROP_INS)?.into_iter().filter(|name| name.ends_with(".cfg"));
        let files = std::iter::once(grub::FILE.to_owned())
            .chain(names.map(|name| format!("{}/{name}", grub::DROP_INS)));
        let mut missing = words.clone();
        for file in files.filter(|file| file != grub::DROP_IN) {
            self.edit(root, &file, |text| {
                if !words::mentions(text, &words) {
                    return Ok(text.to_owned());
                }
                let (text, absent) = grub::replaced(text, &words)?;
                missing.retain(|word| absent.contains(word));
                Ok(text)
            })?;
        }
        if !missing.is_empty() {
            self.changes.push(Change::text(grub::DROP_IN, grub::drop_in(&missing)));
        }
        Ok(())
    }

    /// The existing entries, and the source of new ones.
    fn entries(&mut self, root: &Root) -> Result<()> {
        let words = self.words.clone();
        let mut found = self.detected.loader == Loader::Grub;
        if root.exists(entries::KERNEL_CMDLINE) {
            self.edit(root, entries::KERNEL_CMDLINE, |text| entries::cmdline_with_words(text, &words))?;
        }
        for esp in ESPS {
            let dir = format!("{esp}/loader/entries");
            for name in root.list(&dir)?.iter().filter(|name| name.ends_with(".conf")) {
                found = true;
                self.edit(root, &format!("{dir}/{name}"), |text| entries::with_words(text, &words))?;
            }
            if root.list(format!("{esp}/EFI/Linux"))?.iter().any(|name| name.ends_with(".efi")) {
                found = true;
                self.notes.push(format!(
                    "/{esp}/EFI/Linux contains unified kernel images, which embed their command line: rebuild them (`kernel-install add-all`, `mkinitcpio -P`) with: {}",
                    words.join(" ")
                ));
            }
        }
        if !found {
            self.by_hand("systemd-boot was found, but none of its entries");
        }
        Ok(())
    }

    fn edit(&mut self, root: &Root, path: &str, with: impl FnOnce(&str) -> Result<String>) -> Result<()> {
        match files::read(root, path) {
            Ok(None) => self.by_hand(&format!("/{path} does not exist")),
            Ok(Some(text)) => self.edited(path, &text, with(&text)),
            Err(Error::Refused(why)) => self.by_hand(&why),
            Err(e) => return Err(e),
        }
        Ok(())
    }

    fn edit_or_create(
        &mut self,
        root: &Root,
        path: &str,
        with: impl FnOnce(&str) -> Result<String>,
    ) -> Result<()> {
        if root.exists(path) {
            return self.edit(root, path, with);
        }
        self.edited(path, "", with(""));
        Ok(())
    }

    fn edited(&mut self, path: &str, before: &str, after: Result<String>) {
        match after {
            Ok(after) if after == before => {}
            Ok(after) => self.changes.push(Change::text(path, after)),
            Err(why) => self.by_hand(&format!("/{path} was left alone: {why}")),
        }
    }
}

fn stands(root: &Root, change: &Change) -> bool {
    let now = files::read(root, &change.path).ok().flatten();
    matches!(&change.new, Content::Text { text, .. } if now.as_ref() == Some(text))
}

/// Whether this `grub-mkconfig` reads drop-ins, as Debian's does; others do not, even if the directory exists.
fn reads_drop_ins(root: &Root) -> bool {
    let mkconfig = command::find(root, "grub-mkconfig").and_then(|path| root.read(path).ok());
    root.exists(grub::DROP_INS) && mkconfig.is_none_or(|text| text.contains("default/grub.d"))
}

/// The commands that put changes of `paths` into effect. The initramfs comes first, because a loader may search for it.
pub(super) fn commands_for(root: &Root, paths: &[String]) -> Vec<Command> {
    let changed = |start: &str| paths.iter().any(|path| path.starts_with(start));
    let mut commands = Vec::new();
    let images = "adds the module to the initramfs of every kernel";
    for (config, line) in [
        (initramfs::INITRAMFS_TOOLS, "update-initramfs -u -k all"),
        (initramfs::DRACUT, "dracut --force --regenerate-all"),
        (initramfs::MKINITCPIO, "mkinitcpio -P"),
    ] {
        commands.extend(changed(config).then(|| Command::new(line, images)));
    }
    commands.extend(changed(grub::FILE).then(|| grub_command(root)));
    let u_boot = || Command::new("u-boot-update", "rewrites /boot/extlinux/extlinux.conf");
    commands.extend(changed(extlinux::DEFAULTS).then(u_boot));
    commands
}

fn grub_command(root: &Root) -> Command {
    let lines =
        ["update-grub", "grub2-mkconfig -o /boot/grub2/grub.cfg", "grub-mkconfig -o /boot/grub/grub.cfg"];
    let installed =
        |line: &&&str| line.split(' ').next().is_some_and(|program| command::find(root, program).is_some());
    Command::new(lines.iter().find(installed).unwrap_or(&lines[2]), "rewrites GRUB's menu with these words")
}
