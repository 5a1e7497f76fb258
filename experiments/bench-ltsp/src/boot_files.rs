//! What the clients get for one run, in the server's TFTP directory: LTSP's own `ltsp initrd` makes `ltsp.img` from /etc/ltsp of the server's tree, and its
//! own `ltsp ipxe` the menu.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use eke_apply::boot::ltsp::{SCRIPT, SCRIPT_TEXT};
use eke_bench_core::fault::on;
use eke_bench_desktop::session::Spec;
use eke_vm::{run_to_end, write_scratch};

use crate::conf::{dnsmasq, ganesha, ltsp_conf};
use crate::error::Result;
use crate::plan::Means;
use crate::session::script;
use crate::trees::{Trees, copy};

/// Where LTSP's menu expects the kernel and the initrd of the image, by their beginnings in the client's `/boot`.
const BOOT: [(&str, &str); 2] =
    [("vmlinuz-", "srv/tftp/ltsp/x86_64/vmlinuz"), ("initrd.img-", "srv/tftp/ltsp/x86_64/initrd.img")];

/// What one run's clients do.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// Their means.
    pub means: Means,
    /// Their session.
    pub spec: &'a Spec,
    /// How many.
    pub clients: usize,
    /// The public key of the login.
    pub public_key: &'a str,
}

/// Writes the server's files, and makes what TFTP serves.
///
/// # Errors
/// A file cannot be written, or `ltsp initrd` or `ltsp ipxe` fails.
pub fn make(trees: &Trees, wanted: &Wanted<'_>) -> Result<()> {
    let server = &trees.server;
    let ltsp = server.join("etc/ltsp");
    if ltsp.exists() {
        std::fs::remove_dir_all(&ltsp).map_err(on("remove", &ltsp))?;
    }
    for (path, text) in files(wanted)? {
        put(&server.join(path), &text)?;
    }
    // -b0: without the binaries of iPXE, which the clients have in their ROM.
    for applet in [&["initrd"][..], &["ipxe", "-b0"]] {
        run_to_end(Command::new("chroot").arg(server).arg("ltsp").args(applet))?;
    }
    // `ltsp kernel` would mount the image for it, which has no /boot.
    for (beginning, path) in BOOT {
        let to = server.join(path);
        make_parent(&to)?;
        copy(&trees.boot_file(beginning)?, &to, 0o644)?;
    }
    // As root, dnsmasq serves only what everybody can read.
    let own = server.join("srv/tftp/ltsp/ltsp.img");
    Ok(std::fs::set_permissions(&own, Permissions::from_mode(0o644)).map_err(on("set the mode of", &own))?)
}

/// Files by their path in the server's tree.
fn files(wanted: &Wanted<'_>) -> Result<Vec<(String, String)>> {
    let own = |name: &str| format!("etc/ltsp/eke-bench/{name}");
    let mut files = vec![
        ("etc/ltsp/ltsp.conf".to_owned(), ltsp_conf(wanted.means)),
        ("etc/ganesha/ganesha.conf".to_owned(), ganesha()),
        ("etc/eke-dnsmasq.conf".to_owned(), dnsmasq(wanted.clients)),
        (own("desktop.sh"), script()),
        (own("session.json"), serde_json::to_string(wanted.spec)?),
        (own("key.pub"), wanted.public_key.to_owned()),
    ];
    if wanted.means.is_eke() {
        files.push((SCRIPT.to_owned(), SCRIPT_TEXT.to_owned()));
    }
    Ok(files)
}

fn put(path: &Path, text: &str) -> Result<()> {
    make_parent(path)?;
    Ok(write_scratch(path, text.as_bytes())?)
}

fn make_parent(path: &Path) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new(""));
    Ok(std::fs::create_dir_all(parent).map_err(on("make", parent))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::spec;

    #[test]
    fn only_ekes_clients_get_its_script() {
        let spec = spec(124, &[]);
        let has_script = |means| {
            let wanted = Wanted { means, spec: &spec, clients: 2, public_key: "k" };
            files(&wanted).unwrap().iter().any(|(path, _)| path == SCRIPT)
        };
        assert!(has_script(Means::Eke) && !has_script(Means::Plain));
    }
}
