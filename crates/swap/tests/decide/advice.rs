//! What the user may do beyond the plan.

use eke_model::config::{Enabled, ExistingChoice};
use eke_model::units::Bytes;
use eke_swap::decide::present;
use eke_swap::facts::{DiskKind, Missing, Other};

use crate::machine::{Case, Machine, notes, shown};

fn ssd() -> Machine {
    Machine::usual().disk("/dev/sda2", DiskKind::Solid, -2)
}

#[test]
fn early_kill() {
    let cases: [Case; 8] = [
        ("off", |m| m.facts.min_ttl_ms = Some(0), "the agent's guard stops the program that took it"),
        (
            "not in the kernel",
            |m| m.facts.min_ttl_ms = None,
            "the agent's guard stops the program that took it",
        ),
        (
            "a daemon",
            |m| m.facts.oom_daemons = vec!["earlyoom".into()],
            "earlyoom runs, so eke's guard is the last resort",
        ),
        (
            "both",
            |m| (m.facts.oom_daemons, m.overrides.guard) = (vec!["earlyoom".into()], Enabled::On),
            "the agent's guard stops the program that took it",
        ),
        ("switched off", |m| m.overrides.guard = Enabled::Off, "guard.enabled = \"off\": if even"),
        (
            "without generations min_ttl_ms does nothing",
            |m| m.facts.lru_gen = Some(false),
            "the agent's guard stops the program that took it",
        ),
        (
            "the plan switches generations on",
            |m| (m.facts.lru_gen, m.overrides.settings.lru_gen) = (Some(false), true),
            "min_ttl_ms is 1000, so eke's guard stays off",
        ),
        (
            "without PSI",
            |m| {
                m.facts.min_ttl_ms = None;
                m.facts.missing.push(Missing::new("pressure (PSI)", "no /proc/pressure"));
            },
            "without PSI (psi=1 on the kernel's command line)",
        ),
    ];
    for (name, change, part) in cases {
        for machine in [Machine::usual(), ssd(), Machine::usual().zram("zram0", Bytes::mib(512), 5)] {
            let notes = notes(&machine.with(change).decide());
            assert!(notes.contains(part), "{name}: {notes}");
        }
    }
    assert!(notes(&Machine::usual().decide()).contains("min_ttl_ms is 1000, so eke's guard stays off"));
}

#[test]
fn boot_config_for_zswap_alone() {
    assert!(notes(&ssd().decide()).contains("`eke swap boot-config`"));
    for machine in [Machine::usual(), Machine::usual().zram("zram0", Bytes::mib(512), 5)] {
        assert!(!notes(&machine.decide()).contains("boot-config"));
    }
}

#[test]
fn other_programs_are_named() {
    let file = "/usr/lib/systemd/zram-generator.conf";
    let machine = || Machine::usual().manager("zram-generator", file, "zram0");
    let text = notes(&machine().decide());
    assert!(text.contains("zram-generator is installed (/usr/lib/systemd/zram-generator.conf)"), "{text}");
    assert!(!notes(&machine().with(|m| m.facts.managers[0].active = false).decide()).contains("installed"));
    assert!(
        !notes(&machine().zram("zram0", Bytes::mib(512), 5).decide()).contains("installed"),
        "it is kept"
    );
}

#[test]
fn a_program_that_sets_the_same_is_named_with_what_to_do() {
    let machine = |active, sets: &str| {
        Machine::usual().with(|m| {
            m.facts.others.push(Other {
                name: "tuned".into(),
                active,
                does: "profile balanced".into(),
                sets: vec!["queue.scheduler".into(), sets.into()],
            });
        })
    };
    let text = notes(&machine(true, "vm.swappiness").decide());
    assert!(text.contains("tuned (profile balanced) sets vm.swappiness, too"), "{text}");
    assert!(text.contains("`drop=vm.swappiness`"), "{text}");
    for other in [machine(false, "vm.swappiness"), machine(true, "vm.dirty_ratio")] {
        assert!(!notes(&other.decide()).contains("tuned"));
    }
}

/// Databases' manuals ask for it.
#[test]
fn a_file_that_sets_swappiness_is_named_with_its_value() {
    let machine = Machine::usual().with(|m| {
        m.facts.swappiness = Some(1);
        let (name, does) = ("/etc/sysctl.d/99-postgres.conf".into(), "vm.swappiness = 1".into());
        m.facts.others.push(Other { name, active: true, does, sets: vec!["vm.swappiness".into()] });
    });
    let decision = machine.decide();
    let text = notes(&decision);
    let named =
        "/etc/sysctl.d/99-postgres.conf (vm.swappiness = 1) sets vm.swappiness, too: the plan replaces that";
    assert!(text.contains(named) && !text.contains("profile"), "{text}");
    let set = |knob: &str| {
        let step = decision.plan.steps.iter().find(|p| p.step.to_string().contains(knob)).unwrap();
        (present::value(&machine.facts, &step.step), step.reason.numbers["now"])
    };
    assert_eq!(set("vm.swappiness"), (Some("1".into()), 1.0));
    assert_eq!(set("vm.page-cluster"), (Some("3".into()), 3.0));
}

#[test]
fn areas_behind_zram_are_named() {
    let one = Machine::usual().disk("/dev/mmcblk0p3", DiskKind::WearsOut, -2);
    assert!(notes(&one.decide()).contains("/dev/mmcblk0p3 stays on behind zram"));
    let two = one.disk("/var/swap", DiskKind::WearsOut, -3);
    assert!(notes(&two.decide()).contains("/dev/mmcblk0p3, /var/swap stay on behind zram"));
    let highest = notes(&two.disk("/dev/sda2", DiskKind::WearsOut, 32_767).decide());
    assert!(highest.contains("/dev/mmcblk0p3, /var/swap stay on behind zram"), "{highest}");
    assert!(highest.contains("/dev/sda2 has the highest possible priority (32767)"), "{highest}");
}

/// The printers put a period after each.
#[test]
fn no_sentence_ends_in_a_period() {
    let machines = [
        Machine::usual(),
        ssd(),
        ssd().zram("zram0", Bytes::mib(512), 5),
        ssd().zram("zram0", Bytes::mib(512), 5).existing(ExistingChoice::Replace),
        ssd().zram("zram0", Bytes::mib(512), 5).existing(ExistingChoice::Leave),
        Machine::usual().no_zram(),
        Machine::usual().disk("/dev/mmcblk0p3", DiskKind::WearsOut, 32_767),
    ];
    for machine in machines {
        let text = shown(&machine.decide());
        assert!(!text.contains("..") && !text.contains(":."), "{text}");
    }
}
