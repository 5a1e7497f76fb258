//! `--spill` and what is wrong with it: status and message of the built programs.

use eke_testkit::real::skip;

use super::environment::{Environment, no_fuse};

#[test]
fn options_without_a_directory_or_with_a_wrong_size_are_refused() {
    let environment = Environment::with_fake("exit 1");
    let data = environment.text("data");
    for (args, what) in [
        (&["--spill-size", "1G"][..], "--spill <DIR>"),
        (&["--spill-day", "1G"], "--spill <DIR>"),
        (&["--spill", "/tmp", "--spill-size", "1M"], "is too small for evicted blocks"),
        (&["--spill", "/tmp", "--spill-day", "much"], "much"),
        (&["--spill", "/none/such"], "cannot keep evicted blocks in /none/such: there is no such directory"),
        (&["--spill", "/etc/passwd"], "cannot keep evicted blocks in /etc/passwd: it is not a directory"),
    ] {
        let ran = environment.cache(&[&["mount", &data], args].concat());
        assert_eq!(ran.status, Some(2), "{args:?}: {}", ran.shown());
        assert!(ran.stderr.contains(what), "{args:?}: {}", ran.shown());
    }
}

#[test]
fn an_unfit_directory_is_refused_and_nothing_is_mounted() {
    if let Some(why) = no_fuse() {
        return skip("an_unfit_directory_is_refused_and_nothing_is_mounted", &why);
    }
    let environment = Environment::real(false);
    let data = environment.text("data");
    for (dir, status, what) in [
        (environment.text("fast"), 2, "on the file system of the backing directory"),
        (environment.text("data/sub"), 2, "the cache would serve its own blocks"),
        ("/dev/shm".to_owned(), 2, "is in memory"),
    ] {
        let ran = environment.cache(&["mount", &data, "--memory", "64M", "--spill", &dir]);
        assert_eq!(ran.status, Some(status), "{dir}: {}", ran.shown());
        assert!(ran.stderr.contains(what), "{dir}: {}", ran.shown());
        assert!(!environment.is_mounted(&data), "{dir}");
    }
}
