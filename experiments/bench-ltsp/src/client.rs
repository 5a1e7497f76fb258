//! One client: QEMU with its network card in the clients' network.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use eke_bench_core::fault::{Missing, on};

use crate::error::Result;
use crate::network::{Network, tap};
use crate::plan::addresses;
use crate::server::empty;

/// A running client. Drop switches it off.
#[derive(Debug)]
pub struct Client {
    child: Child,
    port: PathBuf,
    console: PathBuf,
}

impl Client {
    /// Switches a client on; its files are in `place`.
    ///
    /// # Errors
    /// QEMU is missing or does not start.
    pub fn start(network: &Network, place: &Path, number: usize, memory_mib: u32) -> Result<Self> {
        let qemu = eke_vm::program("qemu-system-x86_64");
        let qemu = qemu
            .ok_or_else(|| Missing::new("qemu-system-x86_64", "the experiment needs", "qemu-system-x86"))?;
        let file = |name: &str| place.join(format!("{name}{number}"));
        let (port, console, messages) = (file("port"), file("console"), file("messages"));
        let log = empty(&messages)?;
        for path in [&port, &console] {
            empty(path)?;
        }
        let mut command = network.command(&qemu);
        command.args(arguments(number, memory_mib));
        command.arg("-serial").arg(format!("file:{}", console.display()));
        command.arg("-chardev").arg(format!("file,id=out,path={}", port.display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(on("start", &qemu))?;
        Ok(Self { child, port, console })
    }

    /// What its desktop printed so far.
    #[must_use]
    pub fn output(&self) -> String {
        text(&self.port)
    }

    /// Its console so far.
    #[must_use]
    pub fn console(&self) -> String {
        text(&self.console)
    }

    /// Whether it is off.
    #[must_use]
    pub fn is_off(&mut self) -> bool {
        // An error means that it was waited for.
        self.child.try_wait().map_or(true, |ended| ended.is_some())
    }

    /// Switches it off, if it is on.
    pub fn switch_off(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.switch_off();
    }
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).replace('\r', "")
}

fn arguments(number: usize, memory_mib: u32) -> Vec<String> {
    // One CPU: with two, QEMU 7.2 locked a guest up in modprobe, and others for seconds, at their boot.
    // graphics=off: firmware and iPXE write to the serial console, which says then why a client does not boot.
    let fixed = "-nodefaults -no-user-config -display none -monitor none -no-reboot -boot n -machine q35,graphics=off -accel tcg,thread=single -cpu max -smp 1 \
                 -device virtio-serial-pci -device virtserialport,chardev=out,name=eke";
    let mut words: Vec<String> = fixed.split_whitespace().map(str::to_owned).collect();
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    add("-m", memory_mib.to_string());
    add("-netdev", format!("tap,id=net,ifname={},script=no,downscript=no", tap(number)));
    // The card's own ROM is iPXE: it asks DHCP for LTSP's menu, and loads kernel and initrd by TFTP.
    add("-device", format!("virtio-net-pci,netdev=net,mac={}", addresses(number).0));
    words
}

#[cfg(test)]
mod tests {
    use super::arguments;

    #[test]
    fn a_client_has_its_own_tap_and_address_and_boots_from_the_network() {
        let line = arguments(1, 256).join(" ");
        assert!(line.contains("-m 256 ") && line.contains("ifname=tap1,"), "{line}");
        assert!(line.ends_with("mac=52:54:00:6b:65:02"), "{line}");
        assert!(line.contains("-boot n ") && !line.contains("-kernel"), "{line}");
    }
}
