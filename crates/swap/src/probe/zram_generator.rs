//! zram-generator: its program, and the files that name its devices (zram-generator.conf(5)).

use std::collections::BTreeMap;

use eke_linux::Root;

use super::parse;
use crate::facts::Manager;

const PROGRAMS: [&str; 2] =
    ["usr/lib/systemd/system-generators/zram-generator", "lib/systemd/system-generators/zram-generator"];

/// Of files with one name the one in the last directory counts.
const DIRECTORIES: [&str; 4] = ["usr/lib/systemd", "usr/local/lib/systemd", "etc/systemd", "run/systemd"];

const CONF: &str = "zram-generator.conf";

/// The generator; `None` if there is neither its program nor a device. Without a device it does nothing at boot.
pub(super) fn installed(root: &Root) -> Option<Manager> {
    let programs = PROGRAMS.iter().filter(|file| root.path(file).symlink_metadata().is_ok());
    let mut found: Vec<String> = programs.map(|file| format!("/{file}")).collect();
    let is_installed = !found.is_empty();
    let mut devices = Vec::new();
    for (place, named) in main_file(root).into_iter().chain(drop_ins(root)) {
        add(&mut found, format!("/{place}"));
        named.into_iter().for_each(|device| add(&mut devices, device));
    }
    let active = is_installed && !devices.is_empty();
    (!found.is_empty()).then(|| Manager { name: "zram-generator".into(), found, active, devices })
}

/// A place, and the devices that it names; at least one.
type Named = (String, Vec<String>);

/// The first that exists, from the last directory on: an empty one hides the others.
fn main_file(root: &Root) -> Option<Named> {
    let mut files = DIRECTORIES.iter().rev().map(|directory| format!("{directory}/{CONF}"));
    named(root, files.find(|file| root.exists(file))?)
}

/// The directories of drop-ins, not the files: these are called as their owner likes, and reports of bugs show what is found.
fn drop_ins(root: &Root) -> Vec<Named> {
    let mut files = BTreeMap::new();
    for directory in DIRECTORIES.map(|directory| format!("{directory}/{CONF}.d")) {
        let names = root.list(&directory).unwrap_or_default().into_iter();
        for name in names.filter(|name| name.ends_with(".conf") && !name.starts_with('.')) {
            files.insert(name, directory.clone());
        }
    }
    let named = |(name, directory): (String, String)| {
        let (_, devices) = named(root, format!("{directory}/{name}"))?;
        Some((directory, devices))
    };
    files.into_iter().filter_map(named).collect()
}

/// A link to `/dev/null` names none.
fn named(root: &Root, file: String) -> Option<Named> {
    let devices = parse::zram_sections(&root.read(&file).ok()?);
    (!devices.is_empty()).then_some((file, devices))
}

fn add(all: &mut Vec<String>, one: String) {
    if !all.contains(&one) {
        all.push(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    /// What is found besides the program, whether it acts, and the devices.
    fn generator(files: &[(&str, &str)]) -> (Vec<String>, bool, Vec<String>) {
        let fake = tempfile::tempdir().unwrap();
        for (file, text) in [(PROGRAMS[0], "")].iter().chain(files) {
            let path = fake.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if *text == "/dev/null" {
                symlink(text, path).unwrap();
            } else {
                let mut file = fs::OpenOptions::new().create_new(true).write(true).open(path).unwrap();
                file.write_all(text.as_bytes()).unwrap();
            }
        }
        let mut manager = installed(&Root::at(fake.path())).unwrap();
        assert_eq!(manager.found.remove(0), format!("/{}", PROGRAMS[0]));
        (manager.found, manager.active, manager.devices)
    }

    #[test]
    fn drop_ins_of_zram_generator_name_devices() {
        for directory in ["usr/lib", "usr/local/lib", "etc", "run"] {
            let drop_ins = format!("{directory}/systemd/zram-generator.conf.d");
            let found = generator(&[(&format!("{drop_ins}/50-mine.conf"), "[zram0]\nzram-size = ram / 2\n")]);
            assert_eq!(found, (vec![format!("/{drop_ins}")], true, vec!["zram0".into()]));
        }
        let main = ("usr/lib/systemd/zram-generator.conf", "[zram0]\n");
        let all = generator(&[
            main,
            ("etc/systemd/zram-generator.conf.d/a.conf", "[zram0]\n[zram1]\n"),
            ("etc/systemd/zram-generator.conf.d/b.conf", "[zram2]\n"),
        ]);
        assert_eq!(all.0, ["/usr/lib/systemd/zram-generator.conf", "/etc/systemd/zram-generator.conf.d"]);
        assert_eq!(all.2, ["zram0", "zram1", "zram2"]);
    }

    #[test]
    fn zram_generator_without_a_device_does_nothing_at_boot() {
        let vendors = ("usr/lib/systemd/zram-generator.conf", "[zram0]\n");
        let vendors_drop_in = ("usr/lib/systemd/zram-generator.conf.d/a.conf", "[zram0]\n");
        let inactive: [&[(&str, &str)]; 7] = [
            &[],
            &[("etc/systemd/zram-generator.conf", "# [zram0]\n")],
            &[("etc/systemd/zram-generator.conf.d/a.conf", "")],
            &[("etc/systemd/zram-generator.conf.d/a.conf.example", "[zram0]\n")],
            &[vendors, ("etc/systemd/zram-generator.conf", "")],
            &[vendors_drop_in, ("etc/systemd/zram-generator.conf.d/a.conf", "/dev/null")],
            &[
                vendors,
                ("etc/systemd/zram-generator.conf", "[zram0]\n"),
                ("run/systemd/zram-generator.conf", ""),
            ],
        ];
        for files in inactive {
            assert_eq!(generator(files), (vec![], false, vec![]), "{files:?}");
        }
        assert!(generator(&[vendors_drop_in, ("etc/systemd/zram-generator.conf.d/b.conf", "/dev/null")]).1);
    }
}
