use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

/// A machine with a merged /usr, a program with one library, and a script.
struct Fake(tempfile::TempDir);

impl Fake {
    fn new() -> Self {
        let fake = Self(tempfile::tempdir().unwrap());
        for file in
            ["usr/bin/view", "usr/lib/libv.so.1.2", "usr/lib/ld.so", "etc/a/one", "etc/alternatives/real"]
        {
            fake.file(file);
        }
        for (link, target) in [
            ("bin", "usr/bin"),
            ("lib64", "usr/lib"),
            ("usr/lib/libv.so.1", "libv.so.1.2"),
            ("etc/a/two", "/etc/alternatives/real"),
            ("etc/a/void", "../nothing"),
            ("etc/a/again", "../a"),
        ] {
            symlink(target, fake.0.path().join(link)).unwrap();
        }
        fake
    }

    fn file(&self, name: &str) {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::OpenOptions::new().write(true).create_new(true).open(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    }
}

impl Loaders for Fake {
    fn start(&self, file: &Path) -> Result<Start> {
        let name = file.file_name().unwrap();
        Ok(if name == "view" { Start::Loader("/lib64/ld.so".into()) } else { Start::Data })
    }
    fn libraries(&self, loader: &Path, file: &Path) -> Result<Vec<PathBuf>> {
        assert_eq!((loader, file), (Path::new("/lib64/ld.so"), self.0.path().join("usr/bin/view").as_path()));
        Ok(vec!["/lib64/libv.so.1".into()])
    }
}

fn paths(tree: &Tree) -> Vec<&str> {
    tree.entries.keys().map(|p| p.to_str().unwrap()).collect()
}

#[test]
fn links_stay_links_and_their_targets_come_along() {
    let fake = Fake::new();
    let mut all = Collect::new(fake.0.path(), &fake);
    all.program(Path::new("/bin/view")).unwrap();
    let expected = [
        "/bin",
        "/lib64",
        "/usr",
        "/usr/bin",
        "/usr/bin/view",
        "/usr/lib",
        "/usr/lib/ld.so",
        "/usr/lib/libv.so.1",
        "/usr/lib/libv.so.1.2",
    ];
    assert_eq!(paths(&all.tree), expected);
    assert_eq!(all.tree.entries[Path::new("/bin")], Entry::Link { target: "usr/bin".into() });
    let Entry::File { mode, .. } = all.tree.entries[Path::new("/usr/bin/view")] else { panic!() };
    assert_eq!(mode, 0o755, "no setuid");
}

#[test]
fn a_directory_comes_with_all_that_its_links_lead_to() {
    let fake = Fake::new();
    let files = ["/etc/a", "/etc/none", "/etc/a/one/none"].map(PathBuf::from).to_vec();
    let tree = collect(&Parts { files, ..Parts::default() }, fake.0.path(), &fake).unwrap();
    let expected = [
        "/etc",
        "/etc/a",
        "/etc/a/again",
        "/etc/a/one",
        "/etc/a/two",
        "/etc/a/void",
        "/etc/alternatives",
        "/etc/alternatives/real",
    ];
    assert_eq!(paths(&tree), expected);
    assert_eq!(tree.missing(), ["/etc/none", "/etc/a/one/none"].map(Path::new));
}

#[test]
fn links_in_a_circle_are_an_error() {
    let fake = Fake::new();
    symlink("b", fake.0.path().join("a")).unwrap();
    symlink("a", fake.0.path().join("b")).unwrap();
    let refused = collect(&Parts { files: vec!["/a".into()], ..Parts::default() }, fake.0.path(), &fake);
    assert!(refused.unwrap_err().to_string().contains("follow the links of /a"));
}

#[test]
fn missing_programs_are_all_named() {
    let programs = ["no-such-viewer", "/nonexistent/x", "sh"].map(PathBuf::from).to_vec();
    let error = Tree::of(&Parts { programs, ..Parts::default() }).unwrap_err().to_string();
    assert!(
        error.starts_with("not on this machine: no-such-viewer, /nonexistent/x; `make bench-deps`"),
        "{error}"
    );
}

#[test]
fn another_time_of_change_makes_another_key() {
    let fake = Fake::new();
    let parts = Parts { files: vec!["/etc/a".into()], ..Parts::default() };
    let before = collect(&parts, fake.0.path(), &fake).unwrap();
    assert_eq!(before.key(), collect(&parts, fake.0.path(), &fake).unwrap().key());
    let file = std::fs::File::open(fake.0.path().join("etc/a/one")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_ne!(before.key(), collect(&parts, fake.0.path(), &fake).unwrap().key());
}

#[test]
fn libraries_for_newer_processors_bring_the_plain_one() {
    let plain = without_capabilities(Path::new("/usr/lib/glibc-hwcaps/x86-64-v3/libz.so.1"));
    assert_eq!(plain, Some("/usr/lib/libz.so.1".into()));
    assert_eq!(without_capabilities(Path::new("/usr/lib/libz.so.1")), None);
}

#[test]
fn plain_files_come_without_what_they_need() {
    let fake = Fake::new();
    let plain = vec![PathBuf::from("/usr/bin/view")];
    let tree = collect(&Parts { plain, ..Parts::default() }, fake.0.path(), &fake).unwrap();
    assert_eq!(paths(&tree), ["/usr", "/usr/bin", "/usr/bin/view"]);
    let plain = vec![PathBuf::from("/lib64")];
    let tree = collect(&Parts { plain, ..Parts::default() }, fake.0.path(), &fake).unwrap();
    assert_eq!(paths(&tree), ["/lib64", "/usr", "/usr/lib"], "what is in it belongs to others too");
}
