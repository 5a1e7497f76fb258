//! What mount(8) says of a line in `/etc/fstab` with the type `fuse.eke-cache`, as arguments of `eke cache mount`.
//!
//! mount(8) runs mount.fuse3(8), which runs `eke-cache DIR PLACE -o OPTIONS`. The options are those of the line and what both programs add.

/// Options that change nothing here: the cache has no access times of its own, and the rest is for systemd, is the default or given always.
const WITHOUT_EFFECT: [&str; 17] = [
    "keep_mounted",
    "rw",
    "dev",
    "suid",
    "exec",
    "async",
    "auto",
    "noauto",
    "nofail",
    "_netdev",
    "defaults",
    "relatime",
    "norelatime",
    "noatime",
    "nodiratime",
    "strictatime",
    "lazytime",
];

/// Options of the cache that have a value, and those that have none. mount(8) keeps `shared` for itself, with any value: a mount's propagation.
const WITH_VALUE: [&str; 15] = [
    "memory",
    "compress",
    "passthrough",
    "names",
    "spill",
    "spill_size",
    "spill_day",
    "shared_url",
    "shared_name",
    "shared_password",
    "shared_ca",
    "shared_cert",
    "shared_key",
    "shared_rate",
    "encrypt",
];
const WITHOUT_VALUE: [&str; 5] = ["allow_other", "no_allow_other", "no_watch", "no_remember", "force"];

/// The arguments of `eke` for `words`, the arguments after the program's name; `None` if mount(8) did not write them.
///
/// # Errors
/// An option that a cache does not have: a sentence for the person who wrote the line.
pub fn arguments(words: &[&str]) -> Option<Result<Vec<String>, String>> {
    let (dir, place, options) = match words {
        [dir, place] => (dir, place, ""),
        [dir, place, "-o", options] => (dir, place, *options),
        _ => return None,
    };
    if !dir.starts_with('/') || !place.starts_with('/') {
        return None;
    }
    // mount(8), findmnt(8) and systemd compare the line with what is mounted.
    let mut arguments: Vec<String> =
        ["cache", "mount", dir, place, "--keep-mounted"].map(str::to_owned).to_vec();
    if options.split(',').any(|option| option == "remount") {
        return Some(Err(format!(
            "a cache has the flags of the file system below it: remount that one. `mount -i -o remount,FLAGS {}` changes those of the cache's \
             mount alone",
            place.escape_debug()
        )));
    }
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match argument(option) {
            Ok(argument) => arguments.extend(argument),
            Err(why) => return Some(Err(why)),
        }
    }
    Some(Ok(arguments))
}

/// One option as an argument, if it has an effect.
fn argument(option: &str) -> Result<Option<String>, String> {
    let name = option.split_once('=').map_or(option, |(name, _)| name);
    let is_known = if option == name { WITHOUT_VALUE.contains(&name) } else { WITH_VALUE.contains(&name) };
    if is_known {
        return Ok(Some(format!("--{}", option.replacen(name, &name.replace('_', "-"), 1))));
    }
    if WITHOUT_EFFECT.contains(&option) || option.starts_with("x-") || name == "comment" {
        return Ok(None);
    }
    Err(match option {
        "ro" | "nosuid" | "nodev" | "noexec" => {
            format!(
                "a cache cannot be mounted {option}: mount the file system below it so, and the cache follows it"
            )
        }
        _ => format!(
            "there is no option \"{}\" for a cache; there are {}=..., {}",
            option.escape_debug(),
            WITH_VALUE.join("=..., "),
            WITHOUT_VALUE.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &str) -> Result<Vec<String>, String> {
        arguments(&["/srv", "/fast", "-o", options]).unwrap().map(|arguments| arguments[5..].to_vec())
    }

    #[test]
    fn a_line_becomes_a_command() {
        let words = ["/srv/a b", "/fast", "-o", "rw,noatime,memory=64M,no_watch,dev,suid"];
        let arguments = arguments(&words).unwrap().unwrap();
        assert_eq!(
            arguments,
            ["cache", "mount", "/srv/a b", "/fast", "--keep-mounted", "--memory=64M", "--no-watch"]
        );
    }

    #[test]
    fn a_remount_is_of_the_file_system_below() {
        for options in ["rw,remount,dev", "ro,remount", "remount,memory=64M"] {
            let why = of(options).unwrap_err();
            assert!(why.contains("remount that one") && why.contains("remount,FLAGS /fast`"), "{why}");
        }
    }

    #[test]
    fn a_value_keeps_its_underscores() {
        let spill = of("spill=/mnt/ssd/a_b,spill_size=4G,spill_day=1G").unwrap();
        assert_eq!(spill, ["--spill=/mnt/ssd/a_b", "--spill-size=4G", "--spill-day=1G"]);
        let shared = of("shared_url=redis+cluster://a;b:7000,shared_name=w_w,encrypt=/etc/farm.key").unwrap();
        let words = ["--shared-url=redis+cluster://a;b:7000", "--shared-name=w_w", "--encrypt=/etc/farm.key"];
        assert_eq!(shared, words);
    }

    /// libmount's own options (`libmount/src/optmap.c` of util-linux 2.41) that it does not pass on: it takes them by their names, also with a value.
    const OF_MOUNT: [&str; 22] = [
        "bind",
        "rbind",
        "move",
        "remount",
        "private",
        "rprivate",
        "slave",
        "rslave",
        "shared",
        "rshared",
        "unbindable",
        "runbindable",
        "loop",
        "offset",
        "sizelimit",
        "encryption",
        "uhelper",
        "helper",
        "user",
        "users",
        "owner",
        "group",
    ];

    #[test]
    fn no_option_is_one_that_mount_takes_for_itself() {
        let mut all = WITH_VALUE.iter().chain(&WITHOUT_VALUE);
        assert_eq!(all.find(|name| OF_MOUNT.contains(name)), None);
    }

    #[test]
    fn what_has_no_effect_is_passed_over() {
        assert_eq!(of("keep_mounted,rw,dev,suid,nofail,_netdev,x-systemd.requires=x,comment=a"), Ok(vec![]));
        assert_eq!(arguments(&["/srv", "/fast"]).unwrap().unwrap().len(), 5);
    }

    /// Ansible's role gives `eke cache enable` what has an effect.
    #[test]
    fn ansibles_role_leaves_the_same_out() {
        let role = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packages/ansible/roles/eke/tasks/cache.yml");
        let role = std::fs::read_to_string(role).unwrap();
        let (_, rest) = role.split_once("(x-|comment=|(comment|").unwrap();
        let mut left_out: Vec<&str> = rest.split_once(")$)").unwrap().0.split('|').collect();
        let mut without_effect = WITHOUT_EFFECT;
        left_out.sort_unstable();
        without_effect.sort_unstable();
        assert_eq!(left_out, without_effect);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(of("rw,ro").unwrap_err().contains("cannot be mounted ro"));
        assert!(of("nosuid").unwrap_err().contains("the file system below"));
        for wrong in ["memory", "force=1", "entropy=2", "--force", "a\u{1b}b"] {
            assert!(of(wrong).unwrap_err().starts_with("there is no option"), "{wrong}");
        }
    }

    #[test]
    fn other_words_are_not_from_mount() {
        for words in [&["serve"][..], &["serve", "--force"], &["/srv", "/fast", "-f"], &["/srv"], &[]] {
            assert!(arguments(words).is_none(), "{words:?}");
        }
    }
}
