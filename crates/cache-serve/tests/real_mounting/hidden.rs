//! A machine whose /proc hides other users' processes from the worker.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use eke_testkit::real::{lacking, no_program};
use eke_testkit::wait::wait_for;

use crate::common::NEEDS;
use crate::common::mount::settings;
use crate::common::server::Server;
use crate::served::alone;

const USER: u32 = 65_534;
/// The user's supplementary group.
const GROUP: u32 = 1235;

/// Runs a command on a directory in the server's mount namespace.
fn within(server: &Server, command: &str, dir: &Path) {
    let namespace = format!("--mount=/proc/{}/ns/mnt", server.supervisor());
    let mut nsenter = Command::new("nsenter");
    nsenter.arg(namespace).args(command.split(' ')).arg(dir);
    assert!(nsenter.status().unwrap().success(), "{command}");
}

#[test]
fn a_users_other_groups_count_where_proc_hides_its_processes() {
    const NAME: &str = "a_users_other_groups_count_where_proc_hides_its_processes";
    let missing = lacking(&NEEDS).or_else(|| no_program(&["prlimit", "unshare", "nsenter", "setpriv"]));
    let Some(_alone) = alone(NAME, missing) else { return };
    for options in ["hidepid=2,gid=1234", "hidepid=4"] {
        let dir = tempfile::tempdir().unwrap();
        let [data, place, shared] = ["data", "place", "data/shared"].map(|name| dir.path().join(name));
        for made in [&data, &place, &shared] {
            fs::create_dir(made).unwrap();
        }
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        chown(&shared, Some(USER), Some(GROUP)).unwrap();
        let hide = format!("mount -t proc -o {options} proc /proc && exec \"$@\"");
        let hidden = ["--core=0", "unshare", "--mount", "--propagation", "private", "sh", "-c", &hide, "sh"];
        let mut server = Server::start(&settings(&data, &place), &[], &hidden).unwrap();
        let as_user = format!("setpriv --reuid {USER} --regid {USER} --groups {GROUP}");
        within(&server, &format!("{as_user} chmod 2770"), &place.join("shared"));
        assert_eq!(fs::metadata(&shared).unwrap().mode() & 0o7777, 0o2770, "{options}");
        within(&server, "umount", &place);
        wait_for("the supervisor's exit", || server.exit_status());
    }
}
