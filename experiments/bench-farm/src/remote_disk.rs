//! The origin's disk on a node: a network block device in user space (NBD, by nbdfuse), and the read-only file system on it.
//!
//! ```text
//! ext4 ─ loop device, direct I/O ─ FUSE ─ nbdfuse ─ link ─ nbdkit ─ slow disk
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use eke_apply::state::make_dir;
use eke_bench_core::Environment;
use eke_bench_core::fault::on;
use eke_bench_core::test_image::{Scratch, mount_point, run, source};
use eke_bench_web::server_box::ServerBox;
use eke_bench_web::service::Service;
use eke_linux::Root;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use crate::error::Result;
use crate::hosts::{Host, NBD};
use crate::net::Net;
use crate::programs::need;
use eke_bench_web::server::put;

/// The connections of one node: requests that wait for the disk do not delay others.
const CONNECTIONS: &str = "2";
/// The kernel's usual read-ahead, 128 KiB, in sectors. A loop device has more, as no disk of a network has.
const READ_AHEAD: &str = "256";
/// How long a file system may stay busy at the end.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// The mounted disk. Drop unmounts it; its process belongs to the box. Fields are dropped in this order.
#[derive(Debug)]
pub struct RemoteDisk {
    mounted: Scratch,
    file: Scratch,
}

impl RemoteDisk {
    /// Connects to the origin and mounts the disk, cold.
    ///
    /// # Errors
    /// The origin does not answer, or the kernel refuses.
    pub fn mount(
        environment: &Environment<'_>,
        net: &Net,
        server_box: &mut ServerBox,
        host: Host,
    ) -> Result<Self> {
        let root = environment.root;
        let (file, mounted) = (Scratch::in_run(root)?, Scratch::in_run(root)?);
        let (image, dir) = (mount_point(file.path()), mount_point(mounted.path()));
        put(&image, "")?;
        make_dir(root, &dir, 0o755).map_err(on("make", &dir))?;
        let disk = Self { mounted, file };
        let program = need("nbdfuse", "this experiment needs", "libnbd-bin")?;
        let mut command = net.on(host, &program);
        command.args(["-r", "-C", CONNECTIONS]).arg(&image);
        command.arg(format!("nbd://{}:{NBD}", Host::Origin.address()));
        let service = Service::start(server_box, "nbdfuse", &command, disk.file.path())?;
        service.wait(environment.shutdown, server_box, || is_served(&image))?;
        run(Command::new("mount").args(["-t", "ext4", "-o", "loop,noatime,ro"]).arg(&image).arg(&dir))?;
        if let Some(device) = device(root, &dir) {
            run(Command::new("losetup").arg("--direct-io=on").arg(&device))?;
            run(Command::new("blockdev").args(["--setra", READ_AHEAD]).arg(&device))?;
        }
        Ok(disk)
    }

    /// The content's directory.
    pub fn dir(&self) -> PathBuf {
        mount_point(self.mounted.path())
    }

    /// Unmounts it. The loop device goes with it, and the process then ends.
    ///
    /// # Errors
    /// Something still uses it.
    pub fn tear_down(self) -> Result<()> {
        unmount_all(&self.dir())?;
        unmount_all(&mount_point(self.file.path()))
    }
}

/// Whether the file has the size of a disk.
fn is_served(image: &Path) -> bool {
    image.metadata().is_ok_and(|meta| meta.len() > 0)
}

fn device(root: &Root, dir: &Path) -> Option<PathBuf> {
    source(&root.read("proc/mounts").ok()?, dir)
}

/// Unmounts everything at this place, and waits for its last users.
///
/// # Errors
/// Something still uses it.
pub fn unmount_all(at: &Path) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        match unmount(at, UnmountFlags::empty()) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
            Err(Errno::BUSY) if Instant::now() < until => std::thread::sleep(PAUSE),
            Err(e) => return Err(on("unmount", at)(e).into()),
        }
    }
}
