//! An NFS server that exports the place of a mount. Its client keeps a directory that the server's kernel has forgotten.

use super::{EXPORT, with_nfs};

/// The kernel's own list has the export; there is no table of exportfs(8).
const SCRIPT: &str = r#"
mkdir /export/dir; echo text > /export/dir/file
settings='{"dir":"/export","place":"/export","memory":{"bytes":16777216},"compress":"sync","others":true,"passthrough":"never","watch":false}'
! echo "$settings" | eke-cache serve > /tmp/refused 2>&1 || die "it covers an export"
grep -q "NFS server exports .*/export" /tmp/refused || die "$(cat /tmp/refused)"
! grep -q eke-cache /proc/mounts || die "it is mounted"
echo "$settings" | eke-cache serve --force > /tmp/forced 2>&1 &
waits "the mount" 'grep -q " /export fuse.eke-cache" /proc/mounts'
waits "the warning" 'grep -q "NFS server exports .*/export" /tmp/forced'
step what the warning says
# by the mount that the path leads to now
for cache in auth.unix.ip nfsd.export nfsd.fh; do date +%s > /proc/net/rpc/$cache/flush; done
exports
mount -i -t nfs4 -o vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/ /nfs || die "mount"
cd /nfs/dir; [ "$(cat file)" = text ] || die "nothing is exported"
echo 2 > /proc/sys/vm/drop_caches
waits "what is forgotten" '! cat other 2> /tmp/answer; grep -q Stale /tmp/answer || { echo 2 > /proc/sys/vm/drop_caches; sleep 3; false; }'
cd /; umount /nfs
"#;

#[test]
fn an_export_is_covered_by_force_alone_and_loses_what_is_forgotten() {
    with_nfs(EXPORT, SCRIPT);
}
