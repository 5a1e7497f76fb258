//! The LTSP server's processes: NFS, DHCP and TFTP, as one process tree in the clients' network.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use eke_bench_core::fault::on;

use crate::conf::SERVER_SCRIPT;
use crate::error::{Error, Result};
use crate::network::Network;

/// NFS takes a few seconds to start.
const START: Duration = Duration::from_secs(60);

/// A running server. Drop ends it with all that it started and mounted.
#[derive(Debug)]
pub struct Server {
    child: Child,
}

impl Server {
    /// Starts the server from its tree. `log` gets its messages.
    ///
    /// # Errors
    /// `unshare` does not start, or NFS does not answer.
    pub fn start(network: &Network, tree: &Path, log: PathBuf) -> Result<Self> {
        let messages = empty(&log)?;
        let again = messages.try_clone().map_err(on("open", &log))?;
        let mut command = network.command(Path::new("unshare"));
        command
            .args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", SERVER_SCRIPT, "sh"])
            .arg(tree);
        command.stdin(Stdio::null()).stdout(messages).stderr(again);
        let child = command.spawn().map_err(on("start", Path::new("unshare")))?;
        let mut server = Self { child };
        let begin = Instant::now();
        while !std::fs::read_to_string(&log).unwrap_or_default().contains("NFS SERVER INITIALIZED") {
            let ended = server.child.try_wait().map_err(on("wait for", Path::new("unshare")))?.is_some();
            if ended || begin.elapsed() > START {
                let console = std::fs::read_to_string(&log).unwrap_or_default();
                let what = "the LTSP server did not start".to_owned();
                return Err(Error::Client { what, console: last(&console) });
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // --kill-child: the namespace's process 1 ends with it, and with that everything.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An empty file to append to.
///
/// # Errors
/// It cannot be made.
pub fn empty(path: &Path) -> Result<File> {
    eke_vm::write_scratch(path, b"")?;
    Ok(File::options().append(true).open(path).map_err(on("open", path))?)
}

/// The last lines, as one.
#[must_use]
pub fn last(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(8)..].join(" | ")
}
