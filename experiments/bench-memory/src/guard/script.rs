//! The shell script of a run. Pure.

use super::variants::{Guarding, Load};

/// Functions of every script in a guest.
const LIBRARY: &str = include_str!("../guest/lib.sh");
/// Functions of this experiment.
const OWN: &str = include_str!("guard.sh");
/// The guest's seconds after which a load that still runs is left.
pub const LONGEST_S: u32 = 150;

/// The script: the same swap for all, then the variant's guard, then the load. It sources its own functions again where a load
/// runs as a process of its own.
pub fn script(guarding: Guarding, load: Load) -> String {
    let config = format!("[guard]\nenabled = \"{}\"", if guarding.is_eke() { "auto" } else { "off" });
    let set_up = set_up(guarding);
    let load = load.name();
    format!(
        "cat >/tmp/library <<'EKE-LIBRARY-END'\n{LIBRARY}\n{OWN}\nEKE-LIBRARY-END\n. /tmp/library\nmkdir -p /etc/eke\n\
         cat >/etc/eke/eke.toml <<'EKE-GUEST-END'\n{config}\nEKE-GUEST-END\nswap_up\n{set_up}\ntrial {load} {LONGEST_S}\n"
    )
}

fn set_up(guarding: Guarding) -> &'static str {
    match guarding {
        Guarding::Kernel | Guarding::Eke | Guarding::EkeAgain => "",
        Guarding::MinTtl => {
            "echo y >/sys/kernel/mm/lru_gen/enabled && echo 1000 >/sys/kernel/mm/lru_gen/min_ttl_ms || die \"the kernel has no MGLRU\""
        }
        // As Debian's package starts it: EARLYOOM_ARGS="-r 3600"
        Guarding::Earlyoom => "plain earlyoom -r 3600 >/tmp/earlyoom 2>&1 &",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_every_script() {
        for guarding in Guarding::ALL {
            for load in Load::ALL {
                let text = script(guarding, load);
                let checked = std::process::Command::new("sh").args(["-n", "-c", &text]).status();
                assert!(checked.unwrap().success(), "{guarding:?} {load:?}");
            }
        }
    }

    #[test]
    fn only_ekes_own_rows_have_its_guard() {
        assert!(script(Guarding::Eke, Load::Leak).contains("enabled = \"auto\""));
        assert!(script(Guarding::Earlyoom, Load::Leak).contains("enabled = \"off\""));
    }
}
