//! Scripts of packages, of System V init and of the build, in a mount namespace with directories of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "functions of tests, which fail by it"
)]

mod common;

use std::path::Path;
use std::process::Command;

use common::{Ran, is_root, ran};
use eke_testkit::real::{no_program, skip};

const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Runs a script without other mounts of eke, where /run and /var/lib are empty, `$T` is the tree and `$P` a directory whose `bin` comes first.
fn sh(script: &str) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    let own = "for d in /run /var/lib; do mount -t tmpfs x $d; done; mkdir $P/bin; PATH=$P/bin:$PATH";
    let others = "grep -F ' fuse.eke-cache ' /proc/self/mounts | cut -d' ' -f2 | while read -r m; do umount -l \"$m\"; done";
    let script = format!("set -e; {others}; T={TREE}; P={at}; {own}; {script}");
    ran(Command::new("unshare").args(["-m", "--propagation", "private", "sh", "-c", &script]))
}

fn skipped(test: &str) -> bool {
    let why = (!is_root()).then(|| "not root".to_owned()).or_else(|| no_program(&["unshare", "flock"]));
    why.inspect(|why| skip(test, why)).is_some()
}

/// apk and pacman go on with a removal that could not undo everything.
#[test]
fn a_removal_keeps_the_journals_of_what_is_not_restored() {
    if skipped("a_removal_keeps_the_journals_of_what_is_not_restored") {
        return;
    }
    let removals = [
        "sh $T/packages/scripts/postrm 0",
        "sh $T/packages/scripts/postrm 0.1.0-r0",
        "(. $T/packages/arch/eke.install; post_remove) 2>&1",
    ];
    for removal in removals {
        for journal in ["/run/eke/journal.jsonl", "/var/lib/eke/files.jsonl"] {
            let ran = sh(&format!(
                "mkdir /run/eke /var/lib/eke; touch {journal}; {removal} >$P/said 2>&1; ls {journal}; \
                 grep -c 'not everything is restored' $P/said; rm {journal}; {removal} >$P/said 2>&1; ! ls -d /run/eke"
            ));
            assert_eq!(ran.stdout, format!("{journal}\n1\n"), "{removal}: {}", ran.shown());
        }
    }
}

/// They are the only copies.
#[test]
fn a_removal_names_what_it_left_alone_and_keeps_the_old_texts() {
    if skipped("a_removal_names_what_it_left_alone_and_keeps_the_old_texts") {
        return;
    }
    let script = r#"
        printf '#!/bin/sh\necho "restored: /etc/$1"\necho "left alone: /etc/$1: somebody"\n' >$P/bin/eke
        chmod +x $P/bin/eke
        sh $T/packages/scripts/prerm remove 2>&1
        mkdir -p /var/lib/eke/kept/etc /run/eke
        touch /var/lib/eke/kept/etc/fstab /var/lib/eke/measured.json
        sh $T/packages/scripts/postrm 0 2>&1
        find /var/lib/eke -type f
        sh $T/packages/scripts/postrm purge 2>&1
        ! ls -d /var/lib/eke /run/eke 2>/dev/null"#;
    let ran = sh(script);
    let said: Vec<&str> = ran.stdout.lines().collect();
    let undone = ["disable", "cache", "swap", "ltsp", "down"];
    let left = undone.map(|verb| format!("left alone: /etc/{verb}: somebody"));
    assert_eq!(said[..5], left, "{}", ran.shown());
    assert!(said[5].contains("stay in /var/lib/eke/kept"), "{}", ran.shown());
    assert_eq!(said[6], "/var/lib/eke/kept/etc/fstab", "{}", ran.shown());
    assert!(said[7].contains("removes the old texts") && said[8] == said[6], "{}", ran.shown());
    assert!(ran.status == Some(0), "{}", ran.shown());
}

/// `eke ltsp uninstall` ends with 5 then: the script is gone, and images that were made meanwhile keep theirs.
#[test]
fn an_ltsp_server_whose_clients_use_eke_is_no_obstacle_to_a_removal() {
    if skipped("an_ltsp_server_whose_clients_use_eke_is_no_obstacle_to_a_removal") {
        return;
    }
    common::build_others();
    let script = r#"
        mkdir -p $P/server/usr/sbin $P/server/etc/ltsp $P/pre/bin
        touch $P/server/usr/sbin/ltsp
        printf '[clients]\nEKE=auto\n' >$P/server/etc/ltsp/ltsp.conf
        printf '#!/bin/sh\ncase $1 in ltsp) exec %s "$2" --root %s;; esac\n' $LTSP $P/server >$P/bin/eke
        chmod +x $P/bin/eke
        cp $P/bin/eke $P/pre/bin
        ln -s $LTSP $P/pre/bin/eke-ltsp
        $LTSP install --root $P/server >&2
        sh $T/packages/scripts/prerm remove 2>&1
        $LTSP install --root $P/server >&2
        $T/scripts/uninstall $P/pre
        ls $P/server/etc/ltsp $P/pre/bin"#;
    let ltsp = Path::new(env!("CARGO_BIN_EXE_eke")).with_file_name("eke-ltsp");
    let ran = sh(&format!("LTSP={}; {script}", ltsp.display()));
    let note = "note: until then the lines with EKE in /etc/ltsp/ltsp.conf count";
    assert_eq!(ran.stdout.matches(note).count(), 2, "{}", ran.shown());
    assert!(ran.status == Some(0) && ran.stdout.contains("/pre/bin:\n\n"), "{}", ran.shown());
    assert!(ran.stdout.ends_with("/etc/ltsp:\nltsp.conf\n"), "{}", ran.shown());
}

#[test]
fn a_removal_that_stops_says_what_is_not_yet_undone() {
    if skipped("a_removal_that_stops_says_what_is_not_yet_undone") {
        return;
    }
    let script = r#"
        printf '#!/bin/sh\n[ "$1" = down ] || exit 0\necho "not yet undone: swap"\nexit 5\n' >$P/bin/eke
        chmod +x $P/bin/eke
        ! sh $T/packages/scripts/prerm remove 2>&1"#;
    let ran = sh(script);
    let stops = "eke: `eke down` could not restore everything; the package stays until that is mended";
    assert_eq!(ran.stdout, format!("not yet undone: swap\n{stops}\n"), "{}", ran.shown());
}

/// A user can give a mount of another file system that type, and keep it in use.
#[test]
fn only_a_mount_of_root_stops_the_removal() {
    if skipped("only_a_mount_of_root_stops_the_removal") {
        return;
    }
    let script = r#"
        printf '#!/bin/sh\necho "$@"\n[ "$1 $2" != "cache umount" ]\n' >$P/bin/eke
        chmod +x $P/bin/eke
        mkdir -p "$P/of a user" $P/roots
        exec 8<>/dev/fuse 9<>/dev/fuse
        as() { mount -i -t fuse.eke-cache -o "fd=$1,rootmode=40000,user_id=$2,group_id=0" x "$3"; }
        as 8 1000 "$P/of a user"
        sh $T/packages/scripts/prerm remove 2>&1
        as 9 0 $P/roots
        ! sh $T/packages/scripts/prerm remove 2>&1
        umount -l $P/roots "$P/of a user""#;
    let ran = sh(script);
    let said: Vec<&str> = ran.stdout.lines().collect();
    assert!(said[0].starts_with("cache umount ") && said[0].ends_with("/of a user"), "{}", ran.shown());
    assert_eq!(said[1], "eke: user 1000 still has a mount of the compressed page cache", "{}", ran.shown());
    let last = "eke: a compressed page cache is in use; the package stays until that is mended";
    assert_eq!((said.last(), said.len()), (Some(&last), 4), "{}", ran.shown());
}

/// As where the EFI system partition is mounted only when it is needed.
#[test]
fn a_removal_stops_until_the_loaders_entries_are_mounted() {
    if skipped("a_removal_stops_until_the_loaders_entries_are_mounted") {
        return;
    }
    let script = r#"
        printf '#!/bin/sh\ncase $1 in swap) exec %s "$@";; esac\n' "$EKE" >$P/bin/eke
        chmod +x $P/bin/eke
        mkdir -p /var/lib/eke /boot
        mount -t tmpfs x /boot
        state() { printf '{"is":"file","text":"%s","mode":420,"owner":null}' "$1"; }
        printf '{"owner":"boot-config","path":"boot/loader/entries/a.conf","reason":"zswap from boot on: zswap.enabled=1","old":%s,"new":%s}\n' \
            "$(state 'options quiet\n')" "$(state 'options quiet zswap.enabled=1\n')" >/var/lib/eke/files.jsonl
        sh $T/packages/scripts/prerm remove 2>&1 && exit 9
        mkdir -p /boot/loader/entries
        echo 'options quiet zswap.enabled=1' >/boot/loader/entries/a.conf
        sh $T/packages/scripts/prerm remove 2>&1
        cat /boot/loader/entries/a.conf
        ls -A /var/lib/eke"#;
    let ran = sh(&format!("EKE={}; {script}", env!("CARGO_BIN_EXE_eke")));
    let said: Vec<&str> = ran.stdout.lines().collect();
    assert!(said[0].contains("mount /boot first"), "{}", ran.shown());
    let stays =
        "eke: the kernel's command line could not be restored; the package stays until that is mended";
    assert_eq!(said[1..], [stays, "options quiet"], "{}", ran.shown());
}

/// A package can be removed on a full disk, or beyond a quota.
#[test]
fn an_undo_needs_no_room_where_nothing_was_changed() {
    if skipped("an_undo_needs_no_room_where_nothing_was_changed") {
        return;
    }
    let _machine = eke_testkit::real::lock_machine();
    let script = r#"
        mkdir /var/lib/eke
        undo() { $EKE link --undo && $EKE cache disable --all && $EKE swap boot-config --undo && $EKE down; }
        mount -t tmpfs -o nr_inodes=1 x /var/lib/eke
        touch /var/lib/eke/file && exit 9
        undo
        umount /var/lib/eke
        mount -t tmpfs -o size=4k x /var/lib/eke
        head -c 4096 /dev/zero >/var/lib/eke/full
        (echo x >/var/lib/eke/file) && exit 9
        [ -e /var/lib/eke/file ]; rm /var/lib/eke/file
        undo
        ls -A /var/lib/eke"#;
    let ran = sh(&format!("EKE={}; {script}", env!("CARGO_BIN_EXE_eke")));
    assert!(ran.status == Some(0) && ran.stdout.ends_with("\nfull\n"), "{}", ran.shown());
}

/// As on an ARMv6 board: the programs cannot have changed anything.
#[test]
fn a_package_whose_programs_cannot_run_can_be_removed() {
    if skipped("a_package_whose_programs_cannot_run_can_be_removed") {
        return;
    }
    let script = r#"
        printf '#!/bin/sh\nkill -ILL $$\n' >$P/bin/eke
        chmod +x $P/bin/eke
        sh $T/packages/scripts/prerm remove && echo removed
        for journal in /run/eke/journal.jsonl /var/lib/eke/files.jsonl; do
            mkdir -p ${journal%/*}; touch $journal
            sh $T/packages/scripts/prerm remove || echo stays
            rm $journal
        done"#;
    let ran = sh(script);
    assert_eq!(ran.stdout, "removed\nstays\nstays\n", "{}", ran.shown());
}

#[test]
fn a_cpu_that_the_package_is_not_for_is_refused() {
    if skipped("a_cpu_that_the_package_is_not_for_is_refused") {
        return;
    }
    let script = r#"
        touch $P/cpuinfo
        mount --bind $P/cpuinfo /proc/cpuinfo
        try() { printf '%s\n' "$2" >$P/cpuinfo; DPKG_MAINTSCRIPT_ARCH=$1 sh $T/packages/scripts/preinst install 2>&1 || echo "$1: $?"; }
        try armhf 'Features	: half thumb fastmult vfp edsp java tls'
        try armhf 'Features	: half thumb fastmult vfp edsp neon vfpv3 tls vfpv4'
        try armhf 'Features	: fp asimd evtstrm crc32 cpuid'
        try i386 'flags		: fpu vme de pse tsc msr cx8 sse'
        try i386 'flags		: fpu vme de pse tsc msr cx8 sse sse2'
        try i386 'Features	: half thumb'
        try amd64 'flags		: fpu'
        umount /proc/cpuinfo"#;
    let ran = sh(script);
    let refusal = |what: &str, arch: &str| {
        format!(
            "eke: this CPU has no {what}, which the package for {arch} needs; eke can be built on this machine (make build)\n{arch}: 1\n"
        )
    };
    let expected = refusal("VFPv3 (ARMv7)", "armhf") + &refusal("SSE2", "i386");
    assert_eq!(ran.stdout, expected, "{}", ran.shown());
}

#[test]
fn an_upgrade_replaces_an_agent_outside_of_an_enabled_unit() {
    if skipped("an_upgrade_replaces_an_agent_outside_of_an_enabled_unit") {
        return;
    }
    let script = r#"
        mkdir -p /run/systemd/system /run/eke
        printf '#!/bin/sh\necho "$@"\n[ "$1" != --quiet ] || [ -e $P/enabled ]\n' | sed "s|\$P|$P|" >$P/bin/systemctl
        cp "$(command -v sleep)" $P/bin/eke-agent
        chmod +x $P/bin/systemctl
        eke-agent 1000 & echo $! >/run/eke/agent.lock
        sh $T/packages/scripts/postinst configure 0.1
        touch $P/enabled
        echo enabled; sh $T/packages/scripts/postinst configure 0.1
        kill $!; wait $! || true
        echo ended; sh $T/packages/scripts/postinst configure 0.1"#;
    let ran = sh(script);
    let asked = "daemon-reload\ntry-restart eke.service\n";
    let is_enabled = "--quiet is-enabled eke.service\n";
    assert_eq!(
        ran.stdout,
        format!("{asked}{is_enabled}enabled\n{asked}{is_enabled}start eke.service\nended\n{asked}"),
        "{}",
        ran.shown()
    );
}

#[test]
fn an_upgrade_replaces_the_older_program_of_an_agent_without_a_service() {
    if skipped("an_upgrade_replaces_the_older_program_of_an_agent_without_a_service") {
        return;
    }
    let script = r#"
        mkdir -p /run/eke
        mount -t tmpfs x /usr/share
        install -D $T/packages/scripts/postinst /usr/share/eke/after-upgrade
        printf '#!/bin/sh\necho eke "$@" >>$P/log\n' | sed "s|\$P|$P|" >$P/bin/eke
        printf '#!/bin/sh\n[ "$1" != start ] || echo "$@" >>$P/log\n[ "$1" != --quiet ]\n' | sed "s|\$P|$P|" >$P/bin/systemctl
        chmod +x $P/bin/*
        agent() {
            cp "$(command -v sh)" $P/bin/eke-agent
            eke-agent -c 'read -r line <$0' $P/never "$@" & pid=$!
            until [ "$(cat /proc/$pid/comm)" = eke-agent ]; do sleep 0.01; done
            echo $pid >/run/eke/agent.lock
        }
        mkfifo $P/never
        upgrade() {
            echo "$1:" >>$P/log
            sh $T/packages/scripts/postinst configure 0.1 >$P/said
            sed 's/^/says: /' $P/said >>$P/log
            (. $T/packages/arch/eke.install; post_upgrade) >$P/said
            sed 's/^/says: /' $P/said >>$P/log
        }
        touch /run/eke/applied.json
        agent
        upgrade current
        rm $P/bin/eke-agent
        upgrade replaced
        mkdir -p /run/systemd/system
        upgrade systemd
        rm /run/eke/applied.json
        upgrade "nothing applied"
        touch /run/eke/applied.json
        kill $pid
        agent --config /root/eke.toml
        rm $P/bin/eke-agent
        upgrade "its own settings"
        kill $pid
        cat $P/log"#;
    let ran = sh(script);
    let twice = "eke up\neke up\n";
    let started = "start eke.service\n".repeat(2);
    let goes_on =
        "says: eke: the agent of the older version goes on; `eke up --config FILE` starts the new one\n"
            .repeat(2);
    assert_eq!(
        ran.stdout,
        format!(
            "current:\nreplaced:\n{twice}systemd:\n{started}nothing applied:\nits own settings:\n{goes_on}"
        ),
        "{}",
        ran.shown()
    );
}

/// OpenRC's own agent is restarted; one that `eke up` started is ended first, and OpenRC forgets an own one that has ended.
#[test]
fn an_upgrade_without_systemd_replaces_any_agent() {
    if skipped("an_upgrade_without_systemd_replaces_any_agent") {
        return;
    }
    let script = r#"
        mount -t tmpfs x /etc/init.d
        mkdir /run/eke
        printf '#!/bin/sh\n' >/etc/init.d/eke
        printf '#!/bin/sh\necho "$@"\n' >$P/bin/invoke-rc.d
        printf '#!/bin/sh\necho "$@"\n[ "$3" != status ] || [ -e $P/started ]\n' | sed "s|\$P|$P|" >$P/bin/rc-service
        cp "$(command -v sleep)" $P/bin/eke-agent
        chmod +x $P/bin/* /etc/init.d/eke
        executes() { until [ "$(cat /proc/$1/comm)" = eke-agent ]; do sleep 0.01; done; }
        agent() { eke-agent 1000 & executes $!; echo $! >/run/eke/agent.lock; }
        upgrade() { echo "$1:"; shift; sh $T/packages/scripts/postinst "$@"; }
        upgrade "none" configure 0.1
        agent
        upgrade "System V" configure 0.1
        mkdir /run/openrc; touch /run/openrc/softlevel
        cp /run/eke/agent.lock /run/eke-agent.pid; touch $P/started
        upgrade "own" configure 0.1
        kill -0 $!
        rm $P/started; echo 1 >/run/eke-agent.pid
        upgrade "foreign" 0.1.0-r1 0.1.0-r0
        wait $! || echo "ended by signal $(($? - 128))"
        upgrade "installed" configure"#;
    let ran = sh(script);
    let foreign = "foreign:\n--quiet eke status\n--quiet eke zap\neke restart\nended by signal 15\n";
    let own = "own:\n--quiet eke status\neke restart\n";
    assert_eq!(
        ran.stdout,
        format!("none:\nSystem V:\neke restart\n{own}{foreign}installed:\n"),
        "{}",
        ran.shown()
    );
}

/// The agent ends a moment after its signal, and holds its lock until then.
#[test]
fn a_restart_by_system_v_waits_for_the_agents_end() {
    if skipped("a_restart_by_system_v_waits_for_the_agents_end") {
        return;
    }
    let script = r#"
        printf '#!/bin/sh\n' >$P/bin/eke
        cat >$P/bin/eke-agent <<END
#!/bin/sh
exec 9>$P/lock
flock -n 9 || exit 1
trap 'for n in 1 2 3 4 5; do sleep 0.1; done; exit' TERM
echo "took \$*" >>$P/log
echo "its log" >&2
while :; do sleep 0.1; done
END
        chmod +x $P/bin/*
        sed "s|@BIN@|$P/bin|" $T/units/eke.sysv >$P/init
        agents() { n=0; until [ "$(grep -c took $P/log 2>/dev/null)" = $1 ]; do n=$((n + 1)); [ $n -lt 300 ]; sleep 0.1; done; }
        sh $P/init start
        agents 1
        sh $P/init restart
        agents 2 || echo "no agent is left"
        cat $P/log
        stat -c %a /run/eke/agent.log; cat /run/eke/agent.log
        sh $P/init stop
        ! ls /run/eke-agent.pid
        flock -n $P/lock echo ended"#;
    let ran = sh(script);
    assert_eq!(ran.stdout, "took --up\ntook --up\n600\nits log\nits log\nended\n", "{}", ran.shown());
}

/// The agent's log names programs of users, and some kernels let everybody read theirs. `-e`, as in Debian's rc.local.
#[test]
fn in_rc_local_the_agents_log_is_roots_alone() {
    if skipped("in_rc_local_the_agents_log_is_roots_alone") {
        return;
    }
    let script = r#"
        touch $P/kmsg
        mount --bind $P/kmsg /dev/kmsg
        printf '#!/bin/sh\necho "its plan"\necho "its error" >&2\nexit 5\n' >$P/bin/eke
        printf '#!/bin/sh\necho "its log" >&2\n' >$P/bin/eke-agent
        chmod +x $P/bin/*
        (sed "s|@BIN@|$P/bin|" $T/units/eke.rc-local; echo wait) >$P/rc.local
        sh -e $P/rc.local
        cat $P/kmsg
        stat -c %a /run/eke /run/eke/agent.log
        cat /run/eke/agent.log"#;
    let ran = sh(script);
    assert_eq!(ran.stdout, "its error\n755\n600\nits log\n", "{}", ran.shown());
}

/// Elsewhere the build root's programs would run under emulation for hours, or not at all. As another user than root it would end all the same.
#[test]
fn packages_are_made_on_amd64_alone() {
    let dir = tempfile::tempdir().unwrap();
    let script = "printf '#!/bin/sh\necho aarch64\n' >uname; printf '#!/bin/sh\necho 1000\n' >id; chmod +x uname id; \
                  PATH=$PWD:$PATH; $T/packages/make";
    let mut command = Command::new("sh");
    let ran = ran(command.args(["-c", script]).current_dir(&dir).env("T", TREE));
    assert_eq!(ran.status, Some(1), "{}", ran.shown());
    assert!(ran.stderr.contains("made on amd64; here `sudo make install` builds"), "{}", ran.shown());
}

#[test]
fn bpf_is_not_built_in_a_path_with_a_blank() {
    let features = |target: &str| {
        let script = Path::new(TREE).join("scripts/features");
        let mut command = Command::new(script);
        command.current_dir(TREE).env("CARGO_TARGET_DIR", target);
        ran(&mut command).stdout
    };
    if features("/nowhere").is_empty() {
        return skip("bpf_is_not_built_in_a_path_with_a_blank", "the tools to build BPF are missing");
    }
    assert_eq!((features("/no where"), features("no where")), (String::new(), String::new()));
}
