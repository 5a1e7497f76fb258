//! Four machines and everything that is said to them.

use eke_model::config::ExistingChoice;
use eke_model::units::Bytes;
use eke_swap::facts::{DiskKind, GroupSwappiness, Hibernation};

use crate::machine::{Machine, estimated, reads, row, shown};

/// Diskless, an old CPU, files over the network: the client on which compcache was tried in 2008.
#[test]
fn thin_client() {
    let machine = Machine::new(Bytes::mib(124)).with(|m| {
        m.facts.cpus = 1;
        m.facts.min_ttl_ms = None;
        m.facts.memory_groups_v1 = vec![GroupSwappiness { group: "user.slice".into(), swappiness: 60 }];
        m.measured.algorithms = vec![
            row("lzo-rle", 2.6, 14.0, 8.0, 24.0),
            row("lz4", 2.5, 12.0, 6.0, 19.0),
            row("zstd", 3.2, 52.0, 29.0, 71.0),
        ];
        m.measured.file_read = Some(reads("/usr", 900));
    });
    insta::assert_snapshot!(shown(&machine.decide()));
}

/// 384 MB and a disk that takes 10 ms for a page; deflate, which zram does not have there.
fn laptop(deflate_p99_us: f64) -> Machine {
    Machine::new(Bytes::mib(384)).disk("/dev/sda2", DiskKind::Rotating, -2).with(|m| {
        m.facts.cpus = 1;
        m.facts.areas[0].size = Bytes::mib(768);
        m.facts.hibernation = Some(Hibernation {
            source: "proc/cmdline".into(),
            resume: "/dev/sda2".into(),
            device: Some("sda2".into()),
        });
        m.facts.zswap.as_mut().unwrap().shrinker = None;
        m.measured.algorithms =
            vec![row("lzo", 2.4, 9.0, 5.0, 16.0), estimated("deflate", 3.3, 24.0, 11.0, deflate_p99_us)];
        m.measured.swap_disk = Some(reads("/dev/sda2", 10_000));
        m.measured.file_read = Some(reads("/usr", 9_500));
        m.wish.settings.pool_percent = 90;
    })
}

#[test]
fn laptop_with_a_slow_disk() {
    insta::assert_snapshot!("laptop_deflate_within_the_budget", shown(&laptop(70.0).decide()));
    insta::assert_snapshot!("laptop_deflate_over_the_budget", shown(&laptop(170.0).decide()));
}

/// A Pi 4 as rpi-swap leaves it: zram0, a swap file on the card behind it.
#[test]
fn raspberry_pi() {
    let machine = Machine::usual()
        .zram("zram0", Bytes::mib(2048), 100)
        .disk("/var/swap", DiskKind::WearsOut, -2)
        .manager("rpi-swap", "/usr/lib/systemd/system-generators/rpi-swap-generator", "zram0")
        .with(|m| {
            m.facts.cpus = 4;
            m.measured.kernel = "6.12.25+rpt-rpi-v8".into();
            m.measured.algorithms = vec![
                row("lzo-rle", 1.62, 12.0, 10.0, 20.1),
                row("lz4", 1.59, 11.0, 9.4, 15.9),
                row("zstd", 1.97, 38.0, 16.7, 38.7),
            ];
            m.measured.file_read = Some(reads("/usr", 700));
        });
    insta::assert_snapshot!("raspberry_pi_adopt", shown(&machine.clone().decide()));
    insta::assert_snapshot!(
        "raspberry_pi_replace",
        shown(&machine.existing(ExistingChoice::Replace).decide())
    );
}

/// 16 GiB, NVMe, and a distribution that turns zswap on with lzo.
#[test]
fn desktop() {
    let machine =
        Machine::new(Bytes::mib(16_384)).disk("/dev/nvme0n1p3", DiskKind::Solid, -2).zswap_on().with(|m| {
            m.facts.cpus = 16;
            m.facts.areas[0].size = Bytes::mib(8_192);
            m.facts.min_ttl_ms = Some(0);
            m.facts.oom_daemons = vec!["systemd-oomd".into()];
        });
    insta::assert_snapshot!(shown(&machine.decide()));
}
