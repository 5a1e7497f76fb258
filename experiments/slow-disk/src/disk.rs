//! Puts the parts together, and takes them apart in order.

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
use super::desk::Desk;
use super::device::{Device, unmount};
use super::error::{Result, on};
use super::faults::Faults;
use super::model::Model;
use super::pace::Pace;
use super::place::{Place, sweep};
use super::server::{FILE, Server};
use super::stats::Stats;
use super::store::Store;
use super::{SlowDiskSpec, calibrate, image};

/// What `/proc/mounts` shows as the source of the file server's mount.
pub(super) const SOURCE: &str = "eke-slow-disk";

/// How long its server may take to end once nothing is mounted from it.
const PATIENCE: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// A slow disk that is there. Dropping it takes it down as [`SlowDisk::detach`] does, without saying what failed.
#[derive(Debug)]
pub struct SlowDisk {
    root: Root,
    spec: SlowDiskSpec,
    desk: Arc<Desk>,
    path: Nanos,
    may_hold_swap: bool,
    device: Device,
    /// `None` once it is taken down.
    service: Option<Service>,
}

/// The file server's threads, mount and directory.
#[derive(Debug)]
struct Service {
    session: BackgroundSession,
    connection: Option<Connection>,
    pace: JoinHandle<()>,
    place: Place,
}

impl SlowDisk {
    /// Makes the disk. Removes first what dead owners left. Locks this process's memory for good (mlockall(2)): a server
    /// that is swapped out to its own disk never comes back.
    ///
    /// # Errors
    /// What it needs (root, `/dev/fuse`, loop devices, losetup), a specification that cannot be, or the kernel's refusal;
    /// nothing is left then, not even an image that was not there before.
    pub fn attach(root: &Root, spec: SlowDiskSpec) -> Result<Self> {
        spec.check()?;
        // What cannot be removed is in nobody's way.
        let _ = sweep(root);
        // ONFAULT (Linux 4.4): what is touched stays, what is never touched takes nothing.
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
        let model = Model::new(calibrate::profile(), spec.size, Nanos(0));
        let desk = Arc::new(Desk::new(model, Store::new(image, spec.size, spec.cache)));
        let service = Service::start(root, &desk, spec.size)?;
        let file = service.place.dir().join(FILE);
        let device = Device::attach(root, &file).inspect_err(|_| service.place.leave())?;
        let mut disk = Self {
            root: root.clone(),
            spec,
            desk,
            path: Nanos(0),
            may_hold_swap: false,
            device,
            service: Some(service),
        };
        disk.calibrate()?;
        Ok(disk)
    }

    fn calibrate(&mut self) -> Result<()> {
        self.path = calibrate::path(&self.device.0, || self.desk.stats().late)?;
        self.device.set_rotational(&self.root, self.spec.profile.head.is_some())?;
        self.desk.begin(Model::new(self.spec.profile.clone(), self.spec.size, self.path));
        Ok(())
    }

    /// The block device, `/dev/loopN`.
    pub fn device(&self) -> &Path {
        &self.device.0
    }

    /// What was asked for.
    pub fn spec(&self) -> &SlowDiskSpec {
        &self.spec
    }

    /// What this machine takes for the way to the disk and back; it is taken off each request.
    pub fn path(&self) -> Nanos {
        self.path
    }

    /// May it be swapped to? Only with an image that is never swapped out itself ([`Image::Memory`](super::Image::Memory),
    /// or a file that is not on a tmpfs) and with this process's memory locked (CAP_IPC_LOCK). Otherwise the machine may
    /// wait for ever: for a page that the server needs and that only the server can bring.
    pub fn may_hold_swap(&self) -> bool {
        self.may_hold_swap
    }

    /// What the disk did since it was attached.
    pub fn stats(&self) -> Stats {
        self.desk.stats()
    }

    /// From now on, reads and writes that touch these bytes of the device fail. A program sees EIO; what it can see of
    /// other errors is what the block layer has a status for (ENOSPC, ETIMEDOUT, ENOLINK; blk_errors in block/blk-core.c).
    pub fn fail(&self, range: Range<u64>, errno: Errno) {
        self.desk.change_faults(|f| f.range(range, errno));
    }

    /// From now on, each request (flushes too) fails with this probability (0 to 1). The same seed and the same order of
    /// requests fail at the same places.
    pub fn fail_by_chance(&self, probability: f64, seed: u64, errno: Errno) {
        self.desk.change_faults(|f| f.chance(probability, seed, errno));
    }

    /// Nothing fails from now on.
    pub fn heal(&self) {
        self.desk.change_faults(|f| *f = Faults::default());
    }

    /// Cuts the power: writes that were not flushed are taken back, and every request from now on fails with EIO. The image
    /// is then what a machine finds at its next boot: [`SlowDisk::detach`] this disk and attach the image again. Says how
    /// many written bytes were lost.
    ///
    /// # Errors
    /// The kernel's answer where the image cannot be written.
    pub fn power_cut(&self) -> Result<Bytes> {
        self.desk.cut().map_err(on("write to the image of", &self.device.0))
    }

    /// Unmounts what is mounted from the device, detaches it and ends the server. The image stays, with everything that
    /// was written.
    ///
    /// # Errors
    /// `InUse` where the device is swap or held open, after 2 s; the server ends all the same (then what uses the device
    /// sees EIO), and the kernel lets go of the device when its last user closes it.
    pub fn detach(mut self) -> Result<()> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<()> {
        let Some(service) = self.service.take() else { return Ok(()) };
        let detached = self.device.unmount_all(&self.root).and_then(|()| self.device.detach(&self.root));
        if detached.is_err() {
            self.desk.turn_off();
            service.place.leave();
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
    fn start(root: &Root, desk: &Arc<Desk>, size: Bytes) -> Result<Self> {
        let place = Place::make(root)?;
        let (pace, thread) = Pace::start(Arc::clone(desk)).map_err(on("start a thread for", place.dir()))?;
        let server = Server { desk: Arc::clone(desk), pace, size };
        let session = mount(server, place.dir())?;
        let connection = Connection::of(root, place.dir());
        Ok(Self { session, connection, pace: thread, place })
    }

    /// In order: the last use of the mount is gone, so the kernel says goodbye to the server, its thread ends, and with it
    /// the queue of the other. A copy of the mount that another mount namespace has is dead from then on, and in nobody's way.
    fn end(self, root: &Root) -> Result<()> {
        let dir = self.place.dir();
        unmount(dir)?;
        if let Some(connection) = self.connection.filter(|_| !self.ends_by_itself()) {
            connection.abort(root).map_err(on("end the file server at", dir))?;
        }
        self.session.join().map_err(on("end the server of", dir))?;
        let _ = self.pace.join();
        Ok(())
    }

    /// Not where another mount namespace has a copy of the mount.
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
