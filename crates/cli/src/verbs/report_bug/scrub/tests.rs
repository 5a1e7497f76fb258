use super::*;

fn scrubber() -> Scrubber {
    let own = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    Scrubber::new(Private {
        hosts: own(&["lab7.example.org", "lab7"]),
        users: own(&["anna", "Müller"]),
        paths: own(&["/", "/srv", "/srv/www", "/dev/sda2", "/swap file"]),
        groups: own(&["secret.slice"]),
        public: own(&["/etc/default/zramswap"]),
    })
}

fn scrubbed(text: &str) -> String {
    scrubber().text(text)
}

#[test]
fn the_program_that_a_line_of_the_agents_log_begins_with_is_replaced() {
    let ended = "Ended: process 7 of user 1000 (300 MiB), because memory is short";
    for name in ["keepsake", "a, b (app-c.scope)", "INFO 'x': Ended: process 1"] {
        let line = format!(" INFO \"{name}\": {ended}");
        assert_eq!(scrubbed(&line), format!(" INFO <program>: {ended}"), "{name}");
    }
    for text in [format!(" INFO {ended}"), " INFO the word \"status\": unknown".to_owned()] {
        assert_eq!(scrubbed(&text), text);
    }
}

#[test]
fn what_says_nothing_about_a_person_stays() {
    for text in [
        "set vm.swappiness to 180",
        "zram: 4.0 GiB, 1.5 KiB/s, ratio 3.1 (and/or 12/4), 2026-11-23T04:40:38.123Z INFO 12:34:56",
        "no /sys/class/zram-control (modprobe zram)",
        "/dev/sda2: 0 B used of 2.0 GiB, priority -2; /dev/nvme0n1p3 and /sys/block/zram0/disksize",
        "zram-tools (/etc/default/zramswap, not started)",
        "/usr/bin/eke-agent answers on /run/eke/agent.sock",
        "no recomp_algorithm (Linux 6.2, CONFIG_ZRAM_MULTI_COMP), CAP_SYS_ADMIN, 104857600000 bytes",
    ] {
        assert_eq!(scrubbed(text), text);
    }
}

#[test]
fn names_are_replaced_in_any_case_and_only_as_words() {
    assert_eq!(
        scrubbed("LAB7.example.org, lab7: Anna's disk, hannah"),
        "<host>, <host>: <user>'s disk, hannah"
    );
    assert_eq!(scrubbed("6.1.0-anna Müller"), "6.1.0-<user> <user>");
}

#[test]
fn known_paths_keep_their_sentence_and_others_end_their_line() {
    assert_eq!(scrubbed("/srv/www on /srv, and /swap file full"), "<path 2> on <path 3>, and <path 1> full");
    assert_eq!(
        scrubbed("cannot open /home/anna/My Diary.txt: No such file (os error 2)"),
        "cannot open <path 1> ... (os error 2)"
    );
    assert_eq!(scrubbed("read \"diary/2026.txt\" twice"), "read \"<path 1> ...");
    assert_eq!(scrubbed("in ~/x y"), "in <path 1> ...");
    assert_eq!(scrubbed("/proc/sys/../../home/x"), "<path 1> ...");
    assert_eq!(scrubbed("/dev/mapper/lab-swap, /dev/disk"), "<path 1> ...");
    assert_eq!(scrubbed("group secret.slice waits"), "group <group> waits");
}

#[test]
fn addresses_and_identifiers_are_replaced() {
    for text in [
        "192.168.1.7",
        "10.0.0.1:22",
        "fe80::1",
        "2001:db8:0:1:2:3:4:5",
        "52:54:00:12:34:56",
        "52-54-00-12-34-56",
        "anna@lab7",
    ] {
        assert_eq!(scrubbed(&format!("from {text}, then")), format!("from {ADDRESS}, then"), "{text}");
    }
    for text in [
        "UUID=0a1b",
        "root=LABEL=diary",
        "resume=UUID=7f3c9a52-0d1e-4b6f-8a77-1c2d3e4f5a6b",
        "7f3c9a52-0d1e-4b6f-8a77-1c2d3e4f5a6b",
        "0x5000c500a1b2c3d4",
        "S3Z9NB0K1234",
        "wwn-0x5002538e40a1b2c3",
    ] {
        assert!(scrubbed(text).contains(IDENTIFIER), "{text}: {}", scrubbed(text));
    }
}

#[test]
fn what_stands_beside_a_path_is_not_shown() {
    for (text, shown) in [
        ("no answer of nas:/export/x now", "no answer of <path 1> ..."),
        ("copy anna@lab7:/srv/x", "copy <path 1> ..."),
        ("from 10.0.0.1:/srv", "from <path 1> ..."),
        ("a,10.0.0.1,lab7,/home/x", "a,<address>,<host>,<path 1> ..."),
        ("/srv/www-of-telemachus is", "<path 1> ..."),
        ("/swap file.laertes x", "<path 1> ..."),
        ("in /srv/www/loom, and", "in <path 1> ..."),
        ("on /srv: full, on /srv.", "on <path 1>: full, on <path 1>."),
    ] {
        assert_eq!(scrubbed(text), shown, "{text}");
    }
}

#[test]
fn addresses_and_names_are_found_in_any_company() {
    for (text, shown) in [
        ("a\t10.0.0.1\tb", "a <address> b"),
        ("10.0.0.1,10.0.0.2;lab7", "<address>,<address>;<host>"),
        ("[2001:db8::7]:22 [fe80::1] fe80::1%eth0", "<address> <address> <address>"),
        ("(10.0.0.1)->(10.0.0.2): 10.0.0.1-10.0.0.9", "(<address>)->(<address>): <address>"),
        ("5254.0012.3456, 80:00:02:08:fe:80:00:00", "<address>, <address>"),
        ("host=nas.home.arpa: db.corp.example.com:5432.", "<host>: <host>."),
        ("MÜLLER müller", "<user> <user>"),
        ("serial 2038471293, UUID: a1b2-c3d4", "serial <identifier> UUID: <identifier>"),
        ("LABEL=\"Anna's disk\" is", "LABEL=<identifier> ..."),
        ("SHA256:AbCdEfGh1jKlMnOpQrStUvWxYz", "<identifier>"),
        ("app-firefox-77.scope in user.slice", "<group> in user.slice"),
    ] {
        assert_eq!(scrubbed(text), shown, "{text}");
    }
}

#[test]
fn the_replaced_are_counted() {
    let mut scrubber = scrubber();
    scrubber.document(serde_json::json!({ "a": ["anna on lab7", "/srv"], "b": { "c": "10.0.0.1" } }));
    let counted: Vec<_> = scrubber.replaced.into_iter().collect();
    assert_eq!(counted, [("addresses", 1), ("names", 2), ("paths", 1)]);
}
