//! Swap areas of a process with its own mounts, on the real kernel.

#![expect(clippy::unwrap_used, reason = "functions of tests, which fail by it")]

use std::process::Command;

use eke_apply::session::Session;
use eke_linux::{Root, read};
use eke_model::step::{Reason, ZramSpec};
use eke_model::units::Bytes;
use eke_testkit::real::{lacking, lock_machine, no_program, skip};

/// The device that the helper swaps on.
const DEVICE: &str = "EKE_TEST_SWAP_ON";

/// Not a test of its own: the one below runs it with other mounts than process 1.
#[test]
fn helper_swaps_on() {
    if let Ok(device) = std::env::var(DEVICE) {
        eke_apply::swap_area::swap_on(&Root::host(), &device, Some(3), None).unwrap();
    }
}

/// A scratch device that is removed with its owner.
struct Scratch(Session, String);

impl Drop for Scratch {
    fn drop(&mut self) {
        // This also swaps the area off.
        let _ = self.0.remove_scratch(&self.1);
    }
}

fn scratch() -> Scratch {
    let spec = ZramSpec::new(String::new(), Bytes::mib(16));
    let mut session = Session::open(&Root::host(), "test").unwrap();
    let device = session.scratch_zram(&spec, Reason::new("a test")).unwrap();
    eke_apply::swap_area::write_header(&Root::host(), &format!("dev/{device}"), Bytes::mib(16).0).unwrap();
    Scratch(session, device)
}

/// Runs the helper with its own mounts; process 1 is a shell whose mounts it can see, or the machine's.
fn swap_on(device: &str, own_process_1: bool) {
    let exe = std::env::current_exe().unwrap();
    let helper = format!("unshare -m --propagation private {} --exact helper_swaps_on", exe.display());
    let mut command = if own_process_1 {
        let mut unshare = Command::new("unshare");
        // Two commands, because a shell replaces itself by a single one.
        unshare.args(["-p", "--fork", "--mount-proc", "sh", "-c", &format!("{helper}; exit $?")]);
        unshare
    } else {
        let mut sh = Command::new("sh");
        sh.args(["-c", &helper]);
        sh
    };
    let output = command.env(DEVICE, format!("/dev/{device}")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn an_area_is_identified_by_its_device_wherever_it_was_swapped_on() {
    let why = lacking(&["/sys/class/zram-control"]).or_else(|| no_program(&["unshare", "sh"]));
    if let Some(why) = why {
        return skip("an_area_is_known_by_its_device_wherever_it_was_swapped_on", &why);
    }
    let _machine = lock_machine();
    let root = Root::host();
    for own_process_1 in [true, false] {
        let device = scratch();
        let path = format!("/dev/{}", device.1);
        swap_on(&device.1, own_process_1);
        let area = read::swap_at(&root, &path).unwrap().unwrap();
        assert_eq!(
            (area.zram_name(), area.path.as_str(), area.priority),
            (Some(device.1.as_str()), path.as_str(), 3)
        );
        assert_eq!(eke_apply::revert::swap_off(&root, &path).unwrap(), None);
        assert_eq!(read::swap_at(&root, &path).unwrap(), None);
    }
}

/// `/proc/swaps` shows everybody the path in process 1, if swapon may use that path.
#[test]
fn others_see_the_device_below_dev_where_process_1_can_be_seen() {
    let why = lacking(&["/sys/class/zram-control"]).or_else(|| no_program(&["unshare", "sh"]));
    if let Some(why) = why {
        return skip("others_see_the_device_below_dev_where_process_1_can_be_seen", &why);
    }
    let _machine = lock_machine();
    let device = scratch();
    let exe = std::env::current_exe().unwrap();
    let script = format!(
        "unshare -m --propagation private {} --exact helper_swaps_on >&2; cat /proc/swaps; swapoff /dev/{}",
        exe.display(),
        device.1
    );
    let words = ["-m", "-p", "--fork", "--mount-proc", "--propagation", "private", "sh", "-c", &script];
    let output =
        Command::new("unshare").args(words).env(DEVICE, format!("/dev/{}", device.1)).output().unwrap();
    let swaps = String::from_utf8_lossy(&output.stdout);
    assert!(
        swaps.contains(&format!("\n/dev/{} ", device.1)),
        "{swaps}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
