//! `eke io`: its errors if something is missing. Measurements are tested in `eke-io`.

use std::process::{Command, Output};

#[expect(clippy::unwrap_used, reason = "test code")]
fn eke(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_eke")).args(words).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_device_that_does_not_exist_is_named_with_those_that_do() {
    let output = eke(&["io", "watch", "nosuch0", "--count", "1", "--every", "100ms", "--no-bpf"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        errors(&output)
            .contains("no block device \"nosuch0\" (/sys/block/nosuch0 does not exist); there are: "),
        "{output:?}"
    );
}

#[test]
fn averages_are_shown_to_everybody_with_the_reason() {
    let output = eke(&["io", "watch", "--count", "1", "--every", "100ms", "--no-bpf", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["source"], "stat");
    assert!(document["devices"].is_array() && document["verdicts"].is_array());
    let missing = document["missing"].to_string();
    assert!(missing.contains("BPF is switched off") && missing.contains("averages only"), "{missing}");
    assert!(errors(&output).contains("missing: averages only"), "{output:?}");
}

#[test]
fn csv_has_its_header_first() {
    let output = eke(&["io", "watch", "--count", "1", "--every", "100ms", "--no-bpf", "--csv"]);
    assert!(output.stdout.starts_with(b"unix_s,seconds,device,class,count,"), "{output:?}");
}

#[test]
fn a_comparison_is_refused_before_anything_is_changed() {
    for (words, why) in [
        (
            &["io", "compare", "zfs_nocacheflush", "0", "1", "--", "true"][..],
            "is never changed by eke: without cache flushes a power cut",
        ),
        (&["io", "compare", "nosuch", "0", "1", "--", "true"], "is not a setting of disks that eke knows"),
    ] {
        let output = eke(words);
        assert!(errors(&output).contains(why) && output.status.code() == Some(2), "{output:?}");
    }
    // -1 is the kernel's word for "by default" there
    for words in [["compare", "wbt_lat_usec", "-1", "0"].as_slice(), &["sweep", "wbt_lat_usec", "-1,0"]] {
        let output = eke(&[&["io"], words, &["--device", "nosuch", "--", "true"]].concat());
        assert_ne!(output.status.code(), Some(0));
        assert!(!errors(&output).contains("unexpected argument"), "{output:?}");
    }
    let output = eke(&["io", "sweep", "scheduler", "none,bfq", "--", "true"]);
    let expected = if rustix::process::geteuid().is_root() {
        ("choose one with --device", Some(2))
    } else {
        ("needs root", Some(4))
    };
    assert!(errors(&output).contains(expected.0) && output.status.code() == expected.1, "{output:?}");
}
