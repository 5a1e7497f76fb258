//! Room on the backing disk: through the mount users get what they get without it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use eke_cache_mounts::settings::PassthroughMode;
use eke_testkit::real::{lock_machine, no_program, skip};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::mounted::{detach, is_root};
use super::rights::{NOBODY, as_nobody, each_way, errno, put};

/// A small ext4 with half of its blocks reserved for root, mounted. Unmounted when dropped.
struct Reserved(tempfile::TempDir);

impl Reserved {
    /// `None`: this kernel does not mount it.
    fn new(options: &[&str], mounted: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let run = |program: &str, args: &[&str]| {
            Command::new(program).args(args).current_dir(dir.path()).output().unwrap().status.success()
        };
        fs::create_dir(dir.path().join("disk")).unwrap();
        File::create_new(dir.path().join("image")).unwrap().set_len(32 << 20).unwrap();
        assert!(run("mkfs.ext4", &[&["-q", "-m", "50"], options, &["image"]].concat()));
        run("mount", &["-o", mounted, "image", "disk"]).then(|| Self(dir))
    }

    fn disk(&self) -> PathBuf {
        self.0.path().join("disk")
    }

    /// Limits a user to this many blocks of 1 KiB, by quotactl(2).
    fn limit(&self, user: u32, blocks: u64) {
        let disk = self.disk();
        let mounts = eke_linux::Root::host().read("proc/self/mounts").unwrap();
        let line = mounts.lines().find(|line| line.contains(disk.to_str().unwrap())).unwrap();
        let device = std::ffi::CString::new(line.split(' ').next().unwrap()).unwrap();
        // struct if_dqblk of linux/quota.h: hard and soft limit of blocks, six other fields, then which fields are valid
        let mut limits = [blocks, blocks, 0, 0, 0, 0, 0, 0, u64::from(libc::QIF_BLIMITS)];
        let command = libc::QCMD(libc::Q_SETQUOTA, libc::USRQUOTA);
        #[expect(unsafe_code, reason = "quotactl(2) has no safe wrapper")]
        // SAFETY: the path ends with 0, and the structure is as long as the kernel reads.
        let set =
            unsafe { libc::quotactl(command, device.as_ptr(), user as i32, limits.as_mut_ptr().cast()) };
        assert_eq!(set, 0, "{}", io::Error::last_os_error());
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        detach(&self.disk());
    }
}

/// Writes until the disk is full.
fn fill(path: &Path) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    let chunk = [7; 4096];
    while file.write_all(&chunk).is_ok() {}
}

#[test]
fn a_user_gets_none_of_the_blocks_that_are_reserved_for_root() {
    const NAME: &str = "a_user_gets_none_of_the_blocks_that_are_reserved_for_root";
    if let Some(why) = no_program(&["mkfs.ext4", "mount", "umount"]) {
        return skip(NAME, &why);
    }
    if !is_root() {
        return skip(NAME, "not root");
    }
    let _machine = lock_machine();
    let reserved = Reserved::new(&[], "loop").unwrap();
    each_way(&reserved.disk(), NAME, |m, way| {
        for (name, owner) in [("filler", NOBODY), ("file", NOBODY), ("roots", 0)] {
            put(&m.backing(name), "", owner, 0o644);
        }
        as_nobody(|| fill(&m.backing("filler")));
        as_nobody(|| {
            let mut file = OpenOptions::new().write(true).open(m.at("file")).unwrap();
            let written = errno(file.write_all(&vec![1; 1 << 20]).and_then(|()| file.sync_all()));
            assert_eq!(written, Err(libc::ENOSPC), "write, {way:?}");
            let room = fallocate(&file, FallocateFlags::empty(), 0, 1 << 20);
            assert_eq!(room, Err(Errno::NOSPC), "fallocate, {way:?}");
            let dirs = (0..1000).map(|n| fs::create_dir(m.at("").join(format!("d{n}"))));
            assert!(dirs.into_iter().any(|made| made.is_err()), "mkdir");
        });
        // With passthrough root has none either.
        let root = errno(fs::write(m.at("roots"), vec![1; 1 << 20]));
        let expected = if way == PassthroughMode::Always && m.no_passthrough().is_none() {
            Err(libc::ENOSPC)
        } else {
            Ok(())
        };
        assert_eq!(root, expected, "{way:?}");
    });
}

/// Limits that only `CAP_SYS_RESOURCE` may exceed.
#[test]
fn a_users_quota_holds() {
    const NAME: &str = "a_users_quota_holds";
    const KIB: u64 = 1024;
    if let Some(why) = no_program(&["mkfs.ext4", "mount", "umount"]) {
        return skip(NAME, &why);
    }
    if !is_root() {
        return skip(NAME, "not root");
    }
    let _machine = lock_machine();
    let Some(disk) = Reserved::new(&["-O", "quota", "-E", "quotatype=usrquota"], "loop,usrquota") else {
        return skip(NAME, "no quotas in this kernel");
    };
    disk.limit(NOBODY, KIB);
    each_way(&disk.disk(), NAME, |m, way| {
        put(&m.backing("file"), "", NOBODY, 0o644);
        as_nobody(|| {
            let mut file = OpenOptions::new().write(true).open(m.at("file")).unwrap();
            let written = (0..4).try_for_each(|_| file.write_all(&vec![1; 1 << 20]));
            assert_eq!(errno(written.and_then(|()| file.sync_all())), Err(libc::EDQUOT), "write, {way:?}");
            let room = fallocate(&file, FallocateFlags::empty(), 8 << 20, 1 << 20);
            assert_eq!(room, Err(Errno::DQUOT), "fallocate, {way:?}");
        });
        fs::remove_file(m.at("file")).unwrap();
    });
}
