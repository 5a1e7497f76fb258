//! Debian for the server and for the clients, in the cache: made once by mmdebstrap, never installed on this machine.

use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use eke_bench_core::fault::{Missing, on};
use eke_bench_desktop::documents::Document;
use eke_vm::{program, run_to_end, write_scratch};
use rustix::fs::{FlockOperation, flock};

use crate::conf::{DISPLAY_MANAGER, INITRD_MODULES};
use crate::error::{Error, Result};

/// The version of the trees. It is incremented when the same packages make other trees.
const VERSION: u32 = 1;
const SUITE: &str = "bookworm";
/// netbase: rpcbind asks it for its port.
const SERVER_PACKAGES: &str = "ltsp,dnsmasq-base,nfs-ganesha-vfs,rpcbind,netbase,squashfs-tools,cpio,busybox";
const CLIENT_PACKAGES: &str = "systemd-sysv,udev,linux-image-amd64,initramfs-tools,zstd,ltsp,nfs-common,xvfb,xpdf,openbox,fonts-dejavu-core,\
                               fontconfig,openssh-server,iproute2,busybox,kmod,procps,util-linux";
/// Units that a client of this experiment does not need.
const IDLE: &str = "serial-getty@ttyS0.service getty@tty1.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
                    e2scrub_all.timer e2scrub_reap.service fstrim.timer rpcbind.service rpcbind.socket systemd-pstore.service";
/// What the trees do without.
const LEFT_OUT: [&str; 3] = ["/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*"];
/// Programs of eke that the clients' image has, beside the running program.
const OWN: [&str; 4] = ["eke", "eke-agent", "eke-dash", "eke-bench"];
const UNIT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../units/eke.service"));
/// The clients' image in the server's tree.
const IMAGE: &str = "srv/ltsp/images/x86_64.img";

/// The trees, locked for this experiment.
#[derive(Debug)]
pub struct Trees {
    /// The server's.
    pub server: PathBuf,
    /// The clients', of which the image is made.
    pub client: PathBuf,
    /// Says which programs and documents the clients' image has.
    pub key: String,
    _lock: File,
}

impl Trees {
    /// The trees in `cache`, made if they are not there, and the clients' image with the programs of `own` and the documents. `doing` shows
    /// what takes minutes.
    ///
    /// # Errors
    /// mmdebstrap is missing or fails, a program of eke is missing, or a file cannot be written.
    pub fn ensure(
        cache: &Path,
        mirror: &str,
        own: &Path,
        documents: &[Document],
        doing: &dyn Fn(&str),
    ) -> Result<Self> {
        std::fs::create_dir_all(cache).map_err(on("make", cache))?;
        let lock = File::open(cache).map_err(on("open", cache))?;
        flock(&lock, FlockOperation::LockExclusive)
            .map_err(|e| on("lock", cache)(std::io::Error::from(e)))?;
        let server = tree(cache, "server", mirror, SERVER_PACKAGES, &[], doing)?;
        let client = tree(cache, "client", mirror, CLIENT_PACKAGES, &client_hooks(), doing)?;
        let key = key(own, documents)?;
        let trees = Self { server, client, key, _lock: lock };
        trees.ensure_image(own, documents, doing)?;
        Ok(trees)
    }

    /// The clients' image.
    #[must_use]
    pub fn image(&self) -> PathBuf {
        self.server.join(IMAGE)
    }

    /// The only file in the client's `/boot` whose name begins so.
    ///
    /// # Errors
    /// There is none.
    pub fn boot_file(&self, beginning: &str) -> Result<PathBuf> {
        let boot = self.client.join("boot");
        let entries = std::fs::read_dir(&boot).map_err(on("list", &boot))?;
        let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        found.retain(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(beginning)));
        found.sort();
        found.pop().ok_or_else(|| Error::Client {
            what: format!("{} has no {beginning}", boot.display()),
            console: String::new(),
        })
    }

    fn ensure_image(&self, own: &Path, documents: &[Document], doing: &dyn Fn(&str)) -> Result<()> {
        let mark = self.server.join("srv/ltsp/images/key");
        if self.image().exists() && std::fs::read_to_string(&mark).is_ok_and(|made| made == self.key) {
            return Ok(());
        }
        doing("making the clients' image");
        for name in OWN {
            copy(&own.join(name), &self.client.join("usr/bin").join(name), 0o755)?;
        }
        let unit = self.client.join("lib/systemd/system/eke.service");
        write_scratch(&unit, UNIT.replace("@BIN@", "/usr/bin").as_bytes())?;
        let place = self.client.join("srv/documents");
        std::fs::create_dir_all(&place).map_err(on("make", &place))?;
        for document in documents {
            copy(&document.path, &place.join(&document.name), 0o644)?;
        }
        let images = self.server.join("srv/ltsp/images");
        std::fs::create_dir_all(&images).map_err(on("make", &images))?;
        // In a mount namespace of its own, so that nothing stays mounted.
        let script = "set -e; mount --make-rprivate /; mount --bind \"$1\" \"$2/mnt\"; exec chroot \"$2\" mksquashfs /mnt /srv/ltsp/images/new.img \
                      -noappend -no-xattrs -no-progress -comp zstd -Xcompression-level 3 -e boot var/cache/apt var/lib/apt/lists";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(&self.client).arg(&self.server);
        run_to_end(&mut command)?;
        let new = images.join("new.img");
        std::fs::rename(&new, self.image()).map_err(on("rename", &new))?;
        Ok(write_scratch(&mark, self.key.as_bytes())?)
    }
}

/// The tree of this name, made by mmdebstrap; `hooks` run in it.
fn tree(
    cache: &Path,
    name: &str,
    mirror: &str,
    packages: &str,
    hooks: &[String],
    doing: &dyn Fn(&str),
) -> Result<PathBuf> {
    let place = cache.join(format!("{name}-{VERSION}"));
    if place.is_dir() {
        return Ok(place);
    }
    if program("mmdebstrap").is_none() {
        return Err(Missing::new("mmdebstrap", "the experiment needs", "mmdebstrap").into());
    }
    doing(&format!("Debian for the {name}"));
    let new = cache.join(format!(".{name}-new"));
    if new.exists() {
        std::fs::remove_dir_all(&new).map_err(on("remove", &new))?;
    }
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--variant=minbase"]).arg(format!("--include={packages}"));
    command.args(LEFT_OUT.map(|path| format!("--dpkgopt=path-exclude={path}")));
    command.args(hooks).arg(SUITE).arg(&new).arg(mirror);
    run_to_end(&mut command)?;
    std::fs::rename(&new, &place).map_err(on("rename", &new))?;
    Ok(place)
}

/// A small initrd, a desktop's stand-in, and a root who logs in with a key.
fn client_hooks() -> Vec<String> {
    let file = |path: &str, text: &str| format!("cat >\"$1{path}\" <<'EKE-END'\n{text}\nEKE-END\n");
    let before = format!(
        "mkdir -p \"$1/etc/initramfs-tools/conf.d\"\n{}{}",
        file("/etc/initramfs-tools/conf.d/eke", "MODULES=list"),
        file("/etc/initramfs-tools/modules", INITRD_MODULES)
    );
    let after = format!(
        "set -e\n{}ln -s ../display-manager.service \"$1/etc/systemd/system/multi-user.target.wants/\"\n\
         ln -sf /lib/systemd/system/multi-user.target \"$1/etc/systemd/system/default.target\"\n\
         chmod -x \"$1/usr/share/initramfs-tools/hooks/ltsp-next\"\n\
         for unit in {IDLE}; do ln -sf /dev/null \"$1/etc/systemd/system/$unit\"; done\n\
         chroot \"$1\" passwd -d root\nchroot \"$1\" update-initramfs -u\n",
        file("/etc/systemd/system/display-manager.service", DISPLAY_MANAGER)
    );
    vec![format!("--essential-hook={before}"), format!("--customize-hook={after}")]
}

/// What makes the image another one: the programs and the documents.
fn key(own: &Path, documents: &[Document]) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for name in OWN {
        let path = own.join(name);
        let found = std::fs::metadata(&path).map_err(|_| Error::NotBuilt { name })?;
        let changed = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        (name, found.len(), changed).hash(&mut hasher);
    }
    for document in documents {
        (&document.name, document.bytes.0).hash(&mut hasher);
    }
    (UNIT, DISPLAY_MANAGER).hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// A copy with this mode.
///
/// # Errors
/// It cannot be written.
pub fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    // Not over the old file, which a server may still read.
    let _ = std::fs::remove_file(to);
    std::fs::copy(from, to).map_err(on("copy", from))?;
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(mode)).map_err(on("set the mode of", to))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_the_hooks() {
        for hook in client_hooks() {
            let script = hook.split_once('=').unwrap().1;
            assert!(Command::new("sh").args(["-n", "-c", script]).status().unwrap().success(), "{script}");
        }
    }

    #[test]
    fn a_missing_program_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = key(dir.path(), &[]).unwrap_err().to_string();
        assert!(error.starts_with("eke is not beside") && error.contains("make build"), "{error}");
    }
}
