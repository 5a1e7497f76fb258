use super::*;

fn mount(kind: &str, flags: &str) -> mountinfo::Mount {
    let text = format!("7 1 0:9 / /srv/in {flags} shared:1 - {kind} none rw\n");
    mountinfo::parse(text.as_bytes()).remove(0)
}

#[test]
fn a_mount_that_is_as_strict_or_looser_may_be_entered() {
    let why = |flags, outer| why_not(&mount("tmpfs", flags), outer);
    assert_eq!(why("rw,relatime", "rw"), None);
    assert_eq!(why("rw,relatime", "rw,nosuid"), None);
    assert_eq!(why("ro,nosuid,nodev", "rw,nodev,nosuid"), None);
}

#[test]
fn a_stricter_one_may_not() {
    let why = |flags: &str, outer| why_not(&mount("tmpfs", flags), outer).unwrap();
    assert_eq!(why("rw,nosuid,noexec", "rw,noexec"), "it is nosuid, and this cache's mount is not");
    for flag in FLAGS {
        assert!(why(&format!("rw,{flag}"), "rw").contains(flag));
    }
}

#[test]
fn the_kernels_own_file_systems_may_not() {
    assert!(why_not(&mount("proc", "rw"), "rw").is_some_and(|why| why.starts_with("proc answers")));
    assert!(is_kernels("cgroup2") && !is_kernels("ext4") && !is_kernels("overlay"));
}

/// With this list, which does not change.
fn listing(submounts: Submounts, text: &str) -> Submounts {
    let mut list = MountList { changes: File::open(LIST).ok(), ..MountList::default() };
    list.replace(text.as_bytes());
    *submounts.list() = list;
    submounts
}

#[test]
fn a_read_only_view_of_files_that_are_served_writable_may_not() {
    let text = "1 0 8:0 / / rw - ext4 a rw\n2 1 8:0 /data /d/view ro - ext4 a rw\n3 1 8:1 / /d/other ro - ext4 b rw\n\
        4 1 0:5 / /d/net rw - autofs x rw\n";
    let submounts = listing(Submounts::new(Some(1)), text);
    let is_open = |id| submounts.are_open_to(id, true, || Some("/d".into()));
    assert_eq!([2, 3, 4].map(is_open), [false, true, false]);
    let refused = submounts.refused(Path::new("/d"), |_| false);
    assert_eq!(refused.iter().map(|r| r.place.as_path()).collect::<Vec<_>>(), [Path::new("/d/view")]);
    assert!(refused[0].why.contains("read-only view"), "{refused:?}");
}

#[test]
fn a_second_view_of_a_directory_is_refused_and_one_of_a_file_is_not() {
    let text = "1 0 8:0 / / rw - ext4 a rw\n2 1 8:0 /d/pub /d/view rw - ext4 a rw\n3 1 8:0 /d/file /d/file2 rw - ext4 a rw\n";
    let submounts = listing(Submounts::new(Some(1)), text);
    let is_open = |id, is_directory| submounts.are_open_to(id, is_directory, || Some("/d".into()));
    assert_eq!([(1, true), (2, true), (3, false)].map(|(id, dir)| is_open(id, dir)), [true, false, true]);
    let refused = submounts.refused(Path::new("/d"), |place| place == Path::new("file2"));
    let why = "it shows a directory that is served at /d/pub, too".to_owned();
    assert_eq!(refused, [RefusedMount { place: "/d/view".into(), why }]);
}

#[test]
fn a_view_has_its_number_as_long_as_it_is_at_its_place() {
    let text = "1 0 8:0 / / rw - ext4 a rw\n2 1 8:1 / /d/a rw - ext4 b rw\n3 1 8:2 / /d/b rw - ext4 c rw\n";
    let submounts = listing(Submounts::new(Some(1)), text);
    let views = || [1, 2, 3].map(|id| submounts.view(Some(id)));
    let before = views();
    assert!(before[0] == Some(View::HOME) && before[1] != before[2] && submounts.view(None).is_none());
    submounts.list().replace(text.replace("/d/b rw", "/d/b ro").as_bytes());
    assert_eq!(views(), before);
    submounts.list().replace(text.replace("/d/a", "/d/c").as_bytes());
    assert_eq!(
        (views()[1] == before[1], views()[2] == before[2]),
        (false, true),
        "the number was used again"
    );
}

#[test]
fn only_points_whose_mount_came_or_went_have_changed() {
    let text =
        "1 0 8:0 / / rw - ext4 a rw\n2 1 8:1 / /d/in/a rw - ext4 b rw\n3 1 8:2 / /d/b rw - ext4 c rw\n";
    let submounts = listing(Submounts::new(Some(1)), text);
    let changed = |text: &str| {
        submounts.list().replace(text.as_bytes());
        let changed = submounts.changed_points(Path::new("/d"));
        let shown = |(place, went): (PathBuf, bool)| {
            format!("{}{}", place.display(), if went { " went" } else { "" })
        };
        changed.into_iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(changed(text), ["b", "in/a"]);
    assert_eq!(changed(text), [""; 0]);
    let other = format!("{text}4 1 8:3 / /other rw - ext4 d rw\n");
    assert_eq!(changed(&other), [""; 0], "not inside");
    assert_eq!(changed(&text.replace("/d/b rw", "/d/b rw,nosuid")), ["b"]);
    let other_mount = "1 0 8:0 / / rw - ext4 a rw\n9 1 8:1 / /d/in/a rw - ext4 b rw\n";
    assert_eq!(changed(other_mount), ["b went", "in/a went"]);
}

#[test]
fn mounts_on_the_serving_mount_are_not_inside_the_directory() {
    let submounts = Submounts::new(Some(1));
    submounts.served_by(5);
    let text = "1 0 8:0 / / rw - ext4 a rw\n5 1 0:3 / /d rw - fuse.eke-cache /d rw\n\
        6 5 0:4 / /d/on rw,nosuid - tmpfs t rw\n7 1 0:5 / /d/in rw,nosuid - tmpfs t rw\n\
        8 7 0:6 / /d/in/in rw,nodev - tmpfs t rw\n9 1 0:7 / /dd rw,nosuid - tmpfs t rw\n";
    let submounts = listing(submounts, text);
    let refused = submounts.refused(Path::new("/d"), |_| false);
    assert_eq!(
        refused.iter().map(|r| &*r.place).collect::<Vec<_>>(),
        [Path::new("/d/in"), Path::new("/d/in/in")]
    );
    assert_eq!(
        submounts.changed_points(Path::new("/d")),
        BTreeMap::from(["in", "in/in"].map(|place| (place.into(), false)))
    );
    let at = |parent: &'static str| move || Some(PathBuf::from(parent));
    assert!(submounts.is_point(at(""), OsStr::new("in")) && submounts.is_point(at("in"), OsStr::new("in")));
    assert!(
        !submounts.is_point(at("other"), OsStr::new("in")) && !submounts.is_point(|| None, OsStr::new("in"))
    );
    assert!(["on", "dd", "d"].iter().all(|name| !submounts.is_point(at(""), OsStr::new(name))));
    assert_eq!(submounts.devices(Path::new("/d")), HashSet::from(["0:5", "0:6"].map(str::to_owned)));
    assert!(submounts.is_other(7) && !submounts.is_other(1));
}

#[test]
fn births_change_on_an_overlay_alone() {
    let submounts = |is_overlay| {
        let text =
            "1 0 8:0 / / rw - any a rw\n2 1 0:3 / /d/o rw - overlay o rw\n3 1 8:1 / /d/e rw - ext4 b rw\n";
        listing(Submounts::new(Some(1)).over_overlay(is_overlay), text)
    };
    let (overlay, plain) = (submounts(true), submounts(false));
    let of =
        |submounts: &Submounts| [Some(1), Some(2), Some(3), None].map(|mount| submounts.births_change(mount));
    assert_eq!(of(&overlay), [true, true, false, true]);
    assert_eq!(of(&plain), [false, true, false, false]);
}

#[test]
fn a_point_is_known_until_it_is_replaced() {
    let (points, all) = (Points::default(), ["a", "b", "mnt", ""].map(OsStr::new));
    assert!(!all.iter().any(|name| points.is_any(name)));
    points.add("some/mnt".into());
    assert_eq!(all.map(|name| points.is_any(name)), [false, false, true, false]);
    points.replace(["a", "x/b"].map(PathBuf::from).into());
    assert_eq!(all.map(|name| points.is_any(name)), [true, true, false, false]);
}
