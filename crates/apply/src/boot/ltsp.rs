//! Puts eke into the boot of an LTSP server's clients: one script in `/etc/ltsp/client/init`.
//!
//! `ltsp initrd` puts all of `/etc/ltsp` into `ltsp.img`, which clients get in addition to their initrd (ltsp-initrd(8)), and `ltsp init` sources
//! the scripts of that directory (`locate_applet_scripts` in LTSP's main script). So neither an upgrade of the package `ltsp` nor another image
//! touches it, and no image is built for it. `ltsp.img` is not in the journal: `ltsp initrd` makes it of the files at any time. It is an uncompressed
//! cpio archive, so that it has a file's text as it is shows whether it is up to date, also if a crash came before the command.

use super::act::{self, Undone, Written};
use super::command::{self, Command, Ran};
use crate::files::{self, Change, Listed};
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// The owner of these changes in the journal of files.
pub const OWNER: &str = "ltsp";
/// The script, relative to the server's root.
pub const SCRIPT: &str = "etc/ltsp/client/init/70-eke.sh";
/// Its text.
pub const SCRIPT_TEXT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../units/ltsp/70-eke.sh"));
/// The settings of LTSP.
pub const CONF: &str = "etc/ltsp/ltsp.conf";
/// Why the script is written.
pub const REASON: &str = "clients run it as process 1 before their init; it keeps eke off on a client without EKE=auto in ltsp.conf";

/// What would be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LtspPlan {
    /// The file, unless it has this text already.
    pub changes: Vec<Change>,
    /// `ltsp initrd`, unless `ltsp.img` has the script already.
    pub commands: Vec<Command>,
}

/// What clients get at their next boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its path, relative to the root.
    pub path: String,
    /// Its size; `None`: there is none.
    pub bytes: Option<u64>,
    /// It has eke's script, of any version.
    pub has_script: bool,
    /// It has the script of this version.
    pub is_script_current: bool,
    /// It has `ltsp.conf` as it is now.
    pub is_conf_current: bool,
}

/// Plans the change. `tftp_dir` is that of ltsp.conf, or LTSP's default.
///
/// # Errors
/// This root has no LTSP, or a file cannot be read.
pub fn changes(root: &Root, tftp_dir: &str) -> Result<LtspPlan> {
    if command::find(root, "ltsp").is_none() {
        return Err(Error::Refused(
            "`ltsp` is not installed here, so this is no LTSP server (Debian: apt install ltsp; then its set-up as ltsp.org describes it)"
                .into(),
        ));
    }
    let change = Change::text_with_mode(SCRIPT, SCRIPT_TEXT, 0o644);
    let stands = files::read(root, SCRIPT)?.as_deref() == Some(SCRIPT_TEXT);
    let changes = if stands { Vec::new() } else { vec![change] };
    let image = image(root, tftp_dir)?;
    let commands = if image.is_script_current { Vec::new() } else { vec![write_image()] };
    Ok(LtspPlan { changes, commands })
}

fn write_image() -> Command {
    Command::new("ltsp initrd", "writes /etc/ltsp into ltsp.img, which clients get at their next boot")
}

/// Makes the plan's change and runs its command, also where an earlier call was interrupted between both.
///
/// # Errors
/// A failing command: its name, status and output. The file is then restored.
pub fn write(root: &Root, plan: &LtspPlan) -> Result<Written> {
    let run: act::RunCommand<'_> = &mut |command| command::run(root, command);
    if plan.changes.is_empty() {
        let mut done = Undone::default();
        act::perform_into(&mut done, &plan.commands, run)?;
        return Ok(Written { files: Vec::new(), ran: done.ran, to_run: done.to_run });
    }
    act::write_files(root, OWNER, &plan.changes, &plan.commands, REASON, run)
}

/// Restores the file, and runs `ltsp initrd` if it did, or if `ltsp.img` still has the script. The image may be where `tftp_dir` does not lead, as
/// the shell may evaluate TFTP_DIR.
///
/// # Errors
/// A failing command; the file is restored by then.
pub fn undo(root: &Root, tftp_dir: &str) -> Result<Undone> {
    let has_script = image(root, tftp_dir)?.has_script;
    let can_run = command::find(root, "ltsp").is_some();
    let after = |root: &Root, restored: &[String]| {
        let is_gone = !root.exists(SCRIPT);
        let may_be_in_image = has_script || !restored.is_empty();
        (may_be_in_image && is_gone && can_run).then(write_image).into_iter().collect()
    };
    act::undo_files(root, OWNER, &[], &after, &mut |command| -> Result<Ran> { command::run(root, command) })
}

/// Restores the files of `owner`, and runs `ltsp initrd` if `ltsp.conf` is among them: clients read it in `ltsp.img`.
///
/// # Errors
/// A failing command; the files are restored by then.
pub fn undo_conf(root: &Root, owner: &str) -> Result<Undone> {
    let is_ours = files::listed(root, owner)?.iter().any(|file| file.path == CONF && file.stands);
    let packs = is_ours && command::find(root, "ltsp").is_some();
    let after = |_: &Root, restored: &[String]| {
        (packs && restored.iter().any(|path| path == CONF)).then(write_image).into_iter().collect()
    };
    act::undo_files(root, owner, &[], &after, &mut |command| -> Result<Ran> { command::run(root, command) })
}

/// The script's entry in the journal, if `install` wrote it.
///
/// # Errors
/// The journal of files cannot be read.
pub fn installed(root: &Root) -> Result<Option<Listed>> {
    Ok(files::listed(root, OWNER)?.into_iter().next())
}

/// What `ltsp.img` has.
///
/// # Errors
/// It exists and cannot be read.
pub fn image(root: &Root, tftp_dir: &str) -> Result<Image> {
    let path = format!("{}/ltsp/ltsp.img", tftp_dir.trim_matches('/'));
    let bytes = read_bytes(root, &path)?;
    let has = |text: &[u8]| bytes.as_deref().is_some_and(|bytes| contains(bytes, text));
    let conf = read_bytes(root, CONF)?;
    Ok(Image {
        path,
        bytes: bytes.as_ref().map(|bytes| bytes.len() as u64),
        has_script: has(SCRIPT.as_bytes()),
        is_script_current: has(SCRIPT_TEXT.as_bytes()),
        is_conf_current: conf.is_none_or(|conf| has(&conf)),
    })
}

fn read_bytes(root: &Root, path: &str) -> Result<Option<Vec<u8>>> {
    match root.read_bytes(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.is_absent() => Ok(None),
        Err(e) => Err(e),
    }
}

/// Linear: compares only where the first bytes fit.
fn contains(bytes: &[u8], text: &[u8]) -> bool {
    let Some(first) = text.first() else { return true };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|b| b == first) {
        if rest[at..].starts_with(text) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use eke_testkit::tree::put;

    use super::*;

    const TFTP: &str = "/srv/tftp";

    fn server() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "usr/sbin/ltsp", "");
        put(dir.path(), CONF, "[clients]\nEKE=auto\n");
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn the_script_is_written_once_and_removed_with_its_directories() {
        let (dir, root) = server();
        let plan = changes(&root, TFTP).unwrap();
        let written = write(&root, &plan).unwrap();
        assert_eq!((written.files.len(), written.to_run.len()), (1, 1));
        assert_eq!(root.read(SCRIPT).unwrap(), SCRIPT_TEXT);
        let mode = std::fs::metadata(dir.path().join(SCRIPT)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        assert!(installed(&root).unwrap().is_some_and(|file| file.stands));
        assert_eq!(changes(&root, TFTP).unwrap().changes, []);
        undo(&root, TFTP).unwrap();
        assert!(!root.exists("etc/ltsp/client") && !root.exists("var/lib/eke/files.jsonl"));
        assert!(root.exists(CONF));
    }

    #[test]
    fn an_interrupted_install_writes_the_image_later() {
        let (dir, root) = server();
        write(&root, &changes(&root, TFTP).unwrap()).unwrap();
        put(dir.path(), "srv/tftp/ltsp/ltsp.img", "070701 old");
        let plan = changes(&root, TFTP).unwrap();
        assert_eq!((plan.changes.len(), plan.commands.len()), (0, 1));
        assert_eq!(write(&root, &plan).unwrap().to_run.len(), 1);
        let archive = format!("070701 {SCRIPT}\0{SCRIPT_TEXT}\0etc/ltsp/ltsp.conf[clients]\nEKE=auto\n");
        put(dir.path(), "srv/tftp/ltsp/ltsp.img", &archive);
        let image = image(&root, TFTP).unwrap();
        assert!(image.is_script_current && image.is_conf_current && image.has_script);
        assert_eq!(changes(&root, TFTP).unwrap().commands, []);
        let undone = undo(&root, TFTP).unwrap();
        assert_eq!(undone.to_run.iter().map(ToString::to_string).collect::<Vec<_>>(), ["ltsp initrd"]);
        // Interrupted before the command: the next undo still runs it.
        assert_eq!(undo(&root, TFTP).unwrap().to_run.len(), 1);
    }

    #[test]
    fn an_image_elsewhere_is_written_without_the_script_too() {
        let (_dir, root) = server();
        write(&root, &changes(&root, TFTP).unwrap()).unwrap();
        assert_eq!(undo(&root, "/elsewhere").unwrap().to_run.len(), 1);
        assert_eq!(undo(&root, "/elsewhere").unwrap().to_run, []);
    }

    #[test]
    fn ltsp_conf_is_packed_again_if_it_was_restored() {
        let (dir, root) = server();
        let write = || files::apply(&root, "link", &[Change::text(CONF, "[clients]\nB=2\n")], "r").unwrap();
        write();
        let commands = |undone: Undone| undone.to_run.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(commands(undo_conf(&root, "link").unwrap()), ["ltsp initrd"]);
        assert_eq!(undo_conf(&root, "link").unwrap(), Undone::default());
        write();
        put(dir.path(), CONF, "[clients]\nB=3\n");
        let kept = undo_conf(&root, "link").unwrap();
        assert_eq!((kept.files.len(), commands(kept)), (1, Vec::new()));
    }

    #[test]
    fn without_ltsp_nothing_is_changed() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        assert!(changes(&root, TFTP).unwrap_err().to_string().contains("apt install ltsp"));
        assert_eq!(undo(&root, TFTP).unwrap(), Undone::default());
    }

    #[test]
    fn bytes_are_found_anywhere() {
        for (bytes, text, is_in) in [
            ("aab", "ab", true),
            ("aab", "aab", true),
            ("aab", "b", true),
            ("aab", "ba", false),
            ("", "a", false),
        ] {
            assert_eq!(contains(bytes.as_bytes(), text.as_bytes()), is_in, "{bytes} {text}");
        }
    }
}
