//! The packages that the machines get: the given one, and the same with a higher version and another configuration file, to upgrade to.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// The package for an architecture: of the given files and directories, the last by name that is `eke_*_ARCH.deb`.
///
/// # Errors
/// There is none.
pub fn find(given: &[PathBuf], arch: &str) -> anyhow::Result<PathBuf> {
    let mut found: Vec<PathBuf> = given.iter().flat_map(|place| candidates(place)).collect();
    found.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("eke_") && name.ends_with(&format!("_{arch}.deb"))
    });
    found.sort();
    let places = given.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ");
    found.pop().with_context(|| {
        format!("no package eke_*_{arch}.deb in {places}; `make packages` builds it, DEB=FILE names one")
    })
}

fn candidates(place: &Path) -> Vec<PathBuf> {
    match std::fs::read_dir(place) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => vec![place.to_path_buf()],
    }
}

/// The commit that a package was made of, which `packages/make` writes beside it; empty if it did not.
#[must_use]
pub fn commit(deb: &Path) -> String {
    let beside = deb.with_file_name("commit");
    std::fs::read_to_string(beside).map_or_else(|_| String::new(), |text| text.trim().to_owned())
}

/// The configuration file that an administrator may change, from the package's root.
const CONFIGURATION: &str = "etc/xdg/autostart/eke-notify.desktop";

/// Makes the directory `place` with `old.deb`, the package, and `new.deb`, the same with a higher version and another configuration file.
/// Returns the version.
///
/// # Errors
/// `dpkg-deb` failed, or the package has no version or no configuration file.
pub fn pair(deb: &Path, place: &Path) -> anyhow::Result<String> {
    std::fs::create_dir_all(place).with_context(|| format!("cannot make {}", place.display()))?;
    let copy = |to: &str| {
        std::fs::copy(deb, place.join(to)).with_context(|| format!("cannot copy {}", deb.display()))
    };
    copy("old.deb")?;
    let tree = place.join("tree");
    if tree.exists() {
        std::fs::remove_dir_all(&tree).with_context(|| format!("cannot remove {}", tree.display()))?;
    }
    eke_vm::run_to_end(Command::new("dpkg-deb").arg("--raw-extract").arg(deb).arg(&tree))?;
    let control = tree.join("DEBIAN/control");
    let text =
        std::fs::read_to_string(&control).with_context(|| format!("cannot read {}", control.display()))?;
    let (newer, version) = newer(&text).with_context(|| format!("{} has no version", deb.display()))?;
    eke_vm::write_scratch(&control, newer.as_bytes())?;
    let configuration = tree.join(CONFIGURATION);
    let text = std::fs::read_to_string(&configuration)
        .with_context(|| format!("cannot read {}", configuration.display()))?;
    eke_vm::write_scratch(&configuration, format!("{text}# Of the newer version\n").as_bytes())?;
    let build = ["--root-owner-group", "-Zgzip", "-z1", "--build"];
    eke_vm::run_to_end(Command::new("dpkg-deb").args(build).arg(&tree).arg(place.join("new.deb")))?;
    std::fs::remove_dir_all(&tree).with_context(|| format!("cannot remove {}", tree.display()))?;
    ensure!(place.join("new.deb").exists(), "dpkg-deb made no package");
    Ok(version)
}

/// A control file with a higher version, and the version that it had.
fn newer(control: &str) -> Option<(String, String)> {
    let version = control.lines().find_map(|line| line.strip_prefix("Version: "))?.trim();
    let text = control.replace(&format!("Version: {version}"), &format!("Version: {version}+field1"));
    Some((text, version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{find, newer};

    #[test]
    fn the_version_is_raised() {
        let (text, version) = newer("Package: eke\nVersion: 0.1.0-1\nArchitecture: amd64\n").unwrap();
        assert_eq!(version, "0.1.0-1");
        assert!(text.contains("\nVersion: 0.1.0-1+field1\n"));
        assert!(newer("Package: eke\n").is_none());
    }

    #[test]
    fn the_package_of_the_architecture_is_found() {
        let place = tempfile::tempdir().unwrap();
        for name in ["eke_1_amd64.deb", "eke_2_amd64.deb", "eke_2_i386.deb", "eke-bench_2_amd64.deb"] {
            eke_vm::write_scratch(&place.path().join(name), b"").unwrap();
        }
        let given = [place.path().to_path_buf()];
        assert!(find(&given, "amd64").unwrap().ends_with("eke_2_amd64.deb"));
        assert!(find(&[place.path().join("eke_1_amd64.deb")], "amd64").unwrap().ends_with("eke_1_amd64.deb"));
        assert!(find(&given, "arm64").unwrap_err().to_string().contains("DEB=FILE"));
    }
}
