//! Tells systemd that a unit has started: sd_notify(3), for `Type=notify`.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends the message to the socket that systemd named in `NOTIFY_SOCKET`; nothing without one.
///
/// # Errors
/// The kernel's answer.
pub fn ready(socket: Option<&OsStr>) -> io::Result<()> {
    let Some(name) = socket.filter(|name| !name.is_empty()) else { return Ok(()) };
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(b"READY=1\n", &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_hears_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        ready(Some(path.as_os_str())).unwrap();
        let mut bytes = [0; 64];
        let len = socket.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..len], b"READY=1\n");
        let name = format!("eke-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        ready(Some(OsStr::new(&format!("@{name}")))).unwrap();
        assert_eq!(socket.recv(&mut bytes).unwrap(), 8);
        assert!(ready(None).is_ok() && ready(Some(OsStr::new(""))).is_ok());
        assert!(ready(Some(OsStr::new("/nobody/listens"))).is_err());
    }
}
