//! The mount of a request. Pure: nothing is opened.

use eke_linux::device;
use eke_linux::parse::file_system::keeps_metadata_in_device;
use eke_linux::parse::mountinfo::{Mount, mount_of};

use crate::request::ReadRequest;
use eke_prefetch_model::file_set::Kind;

/// The device number of a request's file system; `None` if no mount serves it.
pub(crate) fn mount_number(request: &ReadRequest, mounts: &[Mount]) -> Option<u64> {
    device::number(&mount_of_request(request, mounts).ok()?.device)
}

/// The mount of a request: for a file the mount that covers its path, for a device the mount of its file system, if that keeps its metadata in the
/// device's pages.
pub(crate) fn mount_of_request<'a>(request: &ReadRequest, mounts: &'a [Mount]) -> Result<&'a Mount, String> {
    if request.kind != Kind::Device {
        return mount_of(&request.path, mounts).ok_or_else(|| "it is on no mount".to_owned());
    }
    if !request.path.starts_with("/dev") {
        return Err("a device outside of /dev is not opened".to_owned());
    }
    let of_it = |mount: &&Mount| device::number(&mount.device) == Some(request.stamp.dev);
    let mount = mounts
        .iter()
        .find(of_it)
        .ok_or_else(|| "it is not the device of a mounted file system".to_owned())?;
    if keeps_metadata_in_device(&mount.kind) {
        Ok(mount)
    } else {
        Err(format!("{} keeps no metadata in the pages of its device", mount.kind))
    }
}
