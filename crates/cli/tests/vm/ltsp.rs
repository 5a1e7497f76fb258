//! An LTSP client in the small machine: Debian's real `ltsp init` as process 1, then what systemd would start, in its order.

use std::time::Duration;

use eke_apply::boot::ltsp::SCRIPT_TEXT;
use eke_vm::{GuestFile, Recipe, Userland, build_static, fetch_package, find_package, make_root_from, run};

use super::{BASICS, Lab, Path, PathBuf, binaries};

/// What LTSP's initrd leaves: the network's facts, and LTSP's init in place of the real one. Client and server are one machine here.
const INIT: &str = "#!/bin/sh
export PATH=/sbin:/bin:/usr/sbin:/usr/bin
modprobe dummy
ip link set lo up; ip addr add 192.168.67.1/32 dev lo
ip link set dummy0 up; ip addr add 192.168.67.20/24 broadcast 192.168.67.255 dev dummy0
echo \"DEVICE='dummy0' PROTO='dhcp' IPV4ADDR='192.168.67.20' IPV4BROADCAST='192.168.67.255' IPV4NETMASK='255.255.255.0'\" >/run/net-dummy0.conf
exec /usr/share/ltsp/client/init/init
";
/// The real init.
const REAL_INIT: &str = "#!/bin/sh\nexec /bin/busybox init\n";
const CONF: &str = "[clients]\nSERVER=192.168.67.1\nDNS_SERVER=192.168.67.1\nPAM_AUTH_TYPE=0\nEKE=auto\nEKE_SWAP=zrm\nEKE_METRICS=on\n";
const UNIT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../units/eke.service"));

/// Debian's package `ltsp`, extracted; fetched if `EKE_VM` allows that.
fn package() -> Option<PathBuf> {
    let cache = eke_vm::default_cache();
    let may_fetch =
        std::env::var("EKE_VM").is_ok_and(|words| words.split(',').any(|word| word.trim() == "fetch"));
    let found = if may_fetch { fetch_package(&cache, "ltsp").ok() } else { find_package(&cache, "ltsp") };
    if found.is_none() {
        let required = std::env::var("EKE_VM").is_ok_and(|words| words.contains("require"));
        assert!(!required, "Debian's package ltsp is not in {}", cache.display());
        eprintln!("skipped: an_ltsp_client: Debian's package ltsp is not in {}", cache.display());
    }
    found
}

fn root(lab: &Lab, ltsp: PathBuf) -> PathBuf {
    let workspace = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let dash = build_static(workspace, &["eke-dash"]).expect("the static binary builds");
    let mut userland = Userland { binaries: [binaries().to_vec(), dash].concat(), ..Userland::default() };
    userland.modules.push("dummy".to_owned());
    userland.files = vec![
        GuestFile::new("/sbin/init", 0o755, INIT),
        GuestFile::new("/sbin/init.ltsp", 0o755, REAL_INIT),
        GuestFile::new("/etc/ltsp/ltsp.conf", 0o644, CONF),
        GuestFile::new("/etc/ltsp/client/init/70-eke.sh", 0o644, SCRIPT_TEXT),
        GuestFile::new("/lib/systemd/system/eke.service", 0o644, UNIT.replace("@BIN@", "/usr/bin")),
        GuestFile::new("/etc/passwd", 0o644, "root::0:0:root:/root:/bin/sh\n"),
        GuestFile::new("/etc/group", 0o644, "root:x:0:\n"),
    ];
    let image = lab.place.path().join("root");
    make_root_from(&lab.kit, &image, 96 << 20, &userland, &[ltsp]).expect("a root disk");
    image
}

#[test]
fn an_ltsp_client_has_swap_before_its_desktop_and_answers_its_server() {
    let Some(lab) = Lab::new() else { return };
    let Some(ltsp) = package() else { return };
    let image = root(&lab, ltsp);
    let mut recipe = Recipe::new(format!("{BASICS}\n{SYSTEMD}")).on_root(&image);
    recipe.timeout = Duration::from_secs(360);
    let outcome = run(&lab.kit, &recipe).unwrap_or_else(|e| panic!("{e}"));
    eprintln!("{}\n{}\n({:.1} s)", outcome.console, outcome.output, outcome.seconds);
    assert_eq!(outcome.status, 0, "console: {}", outcome.console);
    let wrong = "eke: EKE_SWAP=\"zrm\" in ltsp.conf is not valid and ignored: give auto, zram, zswap or off";
    assert!(outcome.console.contains(wrong), "console: {}", outcome.console);
}

/// Starts what eke's script enabled, in the order that its units ask for.
const SYSTEMD: &str = r#"
units=/etc/systemd/system
line() { sed -n "s/^$1=//p" $units/$2 | tail -n 1; }
[ -L $units/multi-user.target.wants/eke-ltsp.service ] || die "LTSP's init did not run eke's script: $(ls $units)"
line Before eke-ltsp.service | grep -q display-manager.service || die "swap does not come before the desktop"
# the rest of a system, whose pages are measured
twin 20 3
grep -q zram /proc/swaps && die "swap is on before eke's unit ran"
step swap; sh -c "$(line ExecStart eke-ltsp.service)"; status=$?
[ $status = 0 ] || [ $status = 5 ] || die "eke-ltsp.service ended with $status"
grep -q zram /proc/swaps || die "no compressed swap"
twin_ends
step the desktop; stressor 90 3 || die "the stand-in of the desktop ended with $?"
step metrics; line IPAddressAllow eke-ltsp-metrics.service | grep -q "192.168.67.20 192.168.67.1" || die "the server may not ask"
eke-agent & sh -c "exec $(line ExecStart eke-ltsp-metrics.service)" & metrics=$!
waits "the metrics" 'wget -q -O /tmp/metrics http://192.168.67.20:7118/metrics'
grep -q "^eke_swap_applied 1\|^eke_.*zram" /tmp/metrics || die "the metrics lack the swap: $(grep -v '^#' /tmp/metrics | head -30)"
kill $metrics; killall eke-agent
"#;
