//! Starts the parts of a slow disk, and stops them in order.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use eke_linux::Root;
use eke_model::units::{Bytes, Nanos};
use fuser::{BackgroundSession, MountOption, Session};
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};

use super::connection::Connection;
use super::device::{Device, unmount};
use super::engine::Engine;
use super::error::{Result, on};
use super::faults::Faults;
use super::mount_dir::{MountDir, SOURCE, sweep};
use super::pace::Pace;
use super::server::{FILE, Server};
use super::state::DiskState;
use super::stats::Stats;
use super::store::Store;
use super::{SlowDiskSpec, calibrate, image};

/// Polls for the server to end once nothing is mounted from it.
const PATIENCE: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// An attached slow disk. Dropping it detaches it as [`SlowDisk::detach`] does, without errors.
#[derive(Debug)]
pub struct SlowDisk {
    root: Root,
    spec: SlowDiskSpec,
    state: Arc<DiskState>,
    path: Nanos,
    may_hold_swap: bool,
    device: Device,
    /// `None` once detached.
    service: Option<Service>,
}

/// The file server's threads, mount and directory.
#[derive(Debug)]
struct Service {
    session: BackgroundSession,
    connection: Option<Connection>,
    pace: JoinHandle<()>,
    mount_dir: MountDir,
}

impl SlowDisk {
    /// Attaches a disk. First removes the disks of dead owners. Locks this process's memory permanently (mlockall(2)):
    /// a server whose pages are swapped to its own disk would hang.
    ///
    /// # Errors
    /// Missing requirements (root, `/dev/fuse`, loop devices, losetup), an impossible specification, or the kernel's
    /// refusal. Nothing is left then, not even a new image.
    pub fn attach(root: &Root, spec: SlowDiskSpec) -> Result<Self> {
        spec.check()?;
        // Disks that cannot be removed are no obstacle.
        let _ = sweep(root);
        // ONFAULT (Linux 4.4) locks pages once they are touched; untouched pages take no memory.
        let locked =
            mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT).is_ok();
        let (image, made) = image::open(root, &spec)?;
        let may_hold_swap = locked && image::may_hold_swap(&image, &spec.image);
        let mut disk = Self::serve(root, spec, image)?;
        disk.may_hold_swap = may_hold_swap;
        made.keep();
        Ok(disk)
    }

    fn serve(root: &Root, spec: SlowDiskSpec, image: File) -> Result<Self> {
        let engine = Engine::new(&calibrate::profile(), spec.size, Nanos(0), spec.cache);
        let state = Arc::new(DiskState::new(engine, Store::new(image, spec.size, spec.cache)));
        let service = Service::start(root, &state, spec.size)?;
        let file = service.mount_dir.dir().join(FILE);
        let device = Device::attach(root, &file).inspect_err(|_| service.mount_dir.leave())?;
        let mut disk = Self {
            root: root.clone(),
            spec,
            state,
            path: Nanos(0),
            may_hold_swap: false,
            device,
            service: Some(service),
        };
        disk.calibrate()?;
        Ok(disk)
    }

    fn calibrate(&mut self) -> Result<()> {
        self.path = calibrate::path(&self.device.0, || self.state.stats().late)?;
        let SlowDiskSpec { profile, size, cache, .. } = &self.spec;
        self.device.set_rotational(&self.root, profile.head.is_some())?;
        self.device.set_host(&self.root, &profile.host)?;
        self.state.begin(Engine::new(profile, *size, self.path, *cache));
        Ok(())
    }

    /// The block device, `/dev/loopN`.
    pub fn device(&self) -> &Path {
        &self.device.0
    }

    /// The specification.
    pub fn spec(&self) -> &SlowDiskSpec {
        &self.spec
    }

    /// The measured overhead of a request, which is subtracted from each one.
    pub fn path(&self) -> Nanos {
        self.path
    }

    /// Whether swap on it is safe. This needs an image that is never swapped out itself
    /// ([`Image::Memory`](super::Image::Memory), or a file outside tmpfs) and this process's memory locked
    /// (CAP_IPC_LOCK). Otherwise the server may wait forever for a page that only it can load.
    pub fn may_hold_swap(&self) -> bool {
        self.may_hold_swap
    }

    /// The counters since it was attached.
    pub fn stats(&self) -> Stats {
        self.state.stats()
    }

    /// Makes reads and writes of these bytes fail from now on. A program sees EIO, or another error for which the block
    /// layer has a status (ENOSPC, ETIMEDOUT, ENOLINK; blk_errors in block/blk-core.c).
    pub fn fail(&self, range: Range<u64>, errno: Errno) {
        self.state.change_faults(|f| f.range(range, errno));
    }

    /// Makes each request (flushes too) fail with this probability (0 to 1) from now on. The same seed and order of
    /// requests give the same failures.
    pub fn fail_by_chance(&self, probability: f64, seed: u64, errno: Errno) {
        self.state.change_faults(|f| f.chance(probability, seed, errno));
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.state.change_faults(|f| *f = Faults::default());
    }

    /// Cuts the power: undoes unflushed writes, and fails every later request with EIO. The image is then in the state
    /// that a machine finds at its next boot: [`SlowDisk::detach`] this disk and attach the image again. Returns the
    /// number of lost bytes.
    ///
    /// # Errors
    /// The kernel's answer if the image cannot be written.
    pub fn power_cut(&self) -> Result<Bytes> {
        self.state.cut().map_err(on("write to the image of", &self.device.0))
    }

    /// Unmounts all mounts of the device, detaches it and ends the server. The image stays, with all written data.
    ///
    /// # Errors
    /// `InUse` if the device is still swap or open after 2 s. The server ends all the same: users of the device then
    /// see EIO, and the kernel releases the device after its last user closes it.
    pub fn detach(mut self) -> Result<()> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<()> {
        let Some(service) = self.service.take() else { return Ok(()) };
        let detached = self.device.unmount_all(&self.root).and_then(|()| self.device.detach(&self.root));
        if detached.is_err() {
            self.state.turn_off();
            service.mount_dir.leave();
            return detached;
        }
        service.end(&self.root)
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        let _ = self.take_down();
    }
}

impl Service {
    fn start(root: &Root, state: &Arc<DiskState>, size: Bytes) -> Result<Self> {
        let mount_dir = MountDir::make(root)?;
        let (pace, thread) =
            Pace::start(Arc::clone(state)).map_err(on("start a thread for", mount_dir.dir()))?;
        let server = Server { disk: Arc::clone(state), pace, size };
        let session = mount(server, mount_dir.dir())?;
        let connection = Connection::of(root, mount_dir.dir());
        Ok(Self { session, connection, pace: thread, mount_dir })
    }

    /// In order: after the last use of the mount, the kernel ends the connection; the server's thread ends, and with it the
    /// other thread's queue. A copy of the mount in another mount namespace is dead from then on, and does no harm.
    fn end(self, root: &Root) -> Result<()> {
        let dir = self.mount_dir.dir();
        unmount(dir)?;
        if let Some(connection) = self.connection.filter(|_| !self.ends_by_itself()) {
            connection.abort(root).map_err(on("end the file server at", dir))?;
        }
        self.session.join().map_err(on("end the server of", dir))?;
        let _ = self.pace.join();
        Ok(())
    }

    /// False if another mount namespace has a copy of the mount.
    fn ends_by_itself(&self) -> bool {
        for _ in 0..PATIENCE {
            if self.session.guard.is_finished() {
                return true;
            }
            std::thread::sleep(PAUSE);
        }
        false
    }
}

fn mount(server: Server, dir: &Path) -> Result<BackgroundSession> {
    let mut config = fuser::Config::default();
    config.mount_options = vec![MountOption::FSName(SOURCE.to_owned()), MountOption::NoExec];
    let session = Session::new(server, dir, &config);
    session.and_then(Session::spawn).map_err(on("mount a file server at", dir))
}
