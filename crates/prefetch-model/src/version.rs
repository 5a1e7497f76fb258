//! Paths with a version in them: each upgrade, and each new container, has another one. Pure.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::program::Program;

/// Where snaps are mounted, each as `NAME/REVISION`.
const SNAPS: [&str; 2] = ["/snap", "/var/lib/snapd/snap"];
/// The stores of Nix and Guix, with `HASH-NAME-VERSION`.
const STORES: [&str; 2] = ["/nix/store", "/gnu/store"];

/// A path below the directory of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// The version's directory. It is gone once the version is removed; a mount on it may only be missing.
    pub dir: PathBuf,
    /// What stays the same in other versions; `None` for a container, which no other one continues.
    lasting: Option<Vec<u8>>,
}

/// The version in a path: of a snap, in the store of Nix or Guix, of a Flatpak, or the container whose layers these are.
pub fn of(path: &Path) -> Option<Versioned> {
    snap(path).or_else(|| store(path)).or_else(|| flatpak(path)).or_else(|| container(path))
}

/// Whether a program is another version of an earlier one: their paths differ only in the version.
pub fn succeeds(new: &Program, old: &Program) -> bool {
    let is_same = |new: &Path, old: &Path| lasting(new).is_some_and(|new| lasting(old) == Some(new));
    let is_same_script = match (&new.script, &old.script) {
        (None, None) => true,
        (Some(new), Some(old)) => is_same(new, old),
        _ => false,
    };
    new != old && is_same(&new.exe, &old.exe) && is_same_script
}

fn lasting(path: &Path) -> Option<Vec<u8>> {
    match of(path) {
        Some(versioned) => versioned.lasting,
        None => Some(path.as_os_str().as_bytes().to_vec()),
    }
}

/// A path whose first `count` names are `dir`, the last of them the version, which `name` replaces.
fn replaced(path: &Path, count: usize, name: &OsStr) -> Option<Versioned> {
    let mut parts = path.components();
    let dir: PathBuf = parts.by_ref().take(count).collect();
    let rest = parts.as_path();
    let lasting = dir.with_file_name(name).join(rest);
    let is_below = !rest.as_os_str().is_empty();
    is_below.then(|| Versioned { dir, lasting: Some(lasting.into_os_string().into_encoded_bytes()) })
}

fn snap(path: &Path) -> Option<Versioned> {
    let top = SNAPS.into_iter().find(|top| path.starts_with(top))?;
    replaced(path, Path::new(top).components().count() + 2, OsStr::new("*"))
}

fn store(path: &Path) -> Option<Versioned> {
    let top = STORES.into_iter().find(|top| path.starts_with(top))?;
    let name = path.strip_prefix(top).ok()?.components().next()?.as_os_str();
    replaced(path, Path::new(top).components().count() + 1, name_of_package(name)?)
}

/// `firefox` of `HASH-firefox-120.0`: a version begins with the first dash before anything but a letter (parseDrvName in the Nix manual).
fn name_of_package(of_store: &OsStr) -> Option<&OsStr> {
    let bytes = of_store.as_bytes();
    let name = &bytes[bytes.iter().position(|byte| *byte == b'-')? + 1..];
    let is_version = |pair: &[u8]| pair[0] == b'-' && !pair[1].is_ascii_alphabetic();
    let end = name.windows(2).position(is_version).unwrap_or(name.len());
    (end > 0).then(|| OsStr::from_bytes(&name[..end]))
}

/// `…/flatpak/app/ID/ARCH/BRANCH/COMMIT`, the same for a runtime.
fn flatpak(path: &Path) -> Option<Versioned> {
    let names: Vec<&OsStr> = path.iter().collect();
    let is_kind = |name: &OsStr| name == "app" || name == "runtime";
    let at = names.windows(2).position(|pair| pair[0] == "flatpak" && is_kind(pair[1]))?;
    replaced(path, at + 6, OsStr::new("*"))
}

/// `…/overlay2/ID/merged` (Docker), `…/overlay/ID/merged` (Podman).
fn container(path: &Path) -> Option<Versioned> {
    let names: Vec<&OsStr> = path.iter().collect();
    let is_layers = |name: &OsStr| name == "overlay2" || name == "overlay";
    let at = names.windows(3).position(|three| is_layers(three[0]) && three[2] == "merged")?;
    Some(Versioned { dir: names.iter().take(at + 2).collect(), lasting: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_a_version_is_found() {
        for (path, dir) in [
            ("/snap/firefox/5/usr/lib/firefox/firefox", Some("/snap/firefox/5")),
            ("/var/lib/snapd/snap/code/7/code", Some("/var/lib/snapd/snap/code/7")),
            ("/nix/store/abc-firefox-120.0/bin/firefox", Some("/nix/store/abc-firefox-120.0")),
            (
                "/var/lib/flatpak/app/org.gnome.gedit/x86_64/stable/c0ffee/files/bin/gedit",
                Some("/var/lib/flatpak/app/org.gnome.gedit/x86_64/stable/c0ffee"),
            ),
            (
                "/home/u/.local/share/flatpak/app/a.b.c/aarch64/master/1f/files/bin/c",
                Some("/home/u/.local/share/flatpak/app/a.b.c/aarch64/master/1f"),
            ),
            ("/var/lib/docker/overlay2/4f2a/merged/usr/bin/x", Some("/var/lib/docker/overlay2/4f2a")),
            ("/snap/bin/firefox", None),
            ("/snap/firefox/5", None),
            ("/nix/store/.links/x", None),
            ("/usr/bin/flatpak", None),
            ("/usr/share/flatpak/app/x", None),
            ("/opt/overlay/merged/x", None),
            ("relative", None),
        ] {
            assert_eq!(of(Path::new(path)).map(|found| found.dir).as_deref(), dir.map(Path::new), "{path}");
        }
    }

    #[test]
    fn an_upgrade_succeeds_the_version_before_it_and_nothing_else() {
        let of = |exe: &str, script: &str| Program {
            exe: exe.into(),
            script: (!script.is_empty()).then(|| script.into()),
        };
        let layers = "/var/lib/docker/overlay2";
        for (new, old, expected) in [
            (of("/snap/firefox/6/firefox", ""), of("/snap/firefox/5/firefox", ""), true),
            (of("/snap/firefox/6/firefox", ""), of("/snap/firefox/6/firefox", ""), false),
            (of("/snap/firefox/6/firefox", ""), of("/snap/firefox/5/crashreporter", ""), false),
            (of("/snap/firefox/6/firefox", ""), of("/snap/code/5/firefox", ""), false),
            (of("/nix/store/b-vim-9.1/bin/vim", ""), of("/nix/store/a-vim-9.0/bin/vim", ""), true),
            (of("/nix/store/b-vim-9.1/bin/vim", ""), of("/nix/store/a-vim-gtk-9.0/bin/vim", ""), false),
            (of("/nix/store/b-gtk+3-3.1/bin/x", ""), of("/nix/store/a-gtk+3-3.0/bin/x", ""), true),
            (of("/f/flatpak/app/i/a/b/2/x", ""), of("/f/flatpak/app/i/a/b/1/x", ""), true),
            (of("/f/flatpak/app/i/a/c/2/x", ""), of("/f/flatpak/app/i/a/b/1/x", ""), false),
            (of("/usr/bin/python3", "/snap/a/2/x"), of("/usr/bin/python3", "/snap/a/1/x"), true),
            (of("/usr/bin/python3", "/snap/a/2/x"), of("/usr/bin/python3", "/snap/a/1/y"), false),
            (of("/usr/bin/python3", "/snap/a/2/x"), of("/usr/bin/python3", ""), false),
            (of("/usr/bin/vim", ""), of("/usr/bin/gvim", ""), false),
            (of(&format!("{layers}/b/merged/x"), ""), of(&format!("{layers}/a/merged/x"), ""), false),
        ] {
            assert_eq!(succeeds(&new, &old), expected, "{new} after {old}");
        }
    }
}
