//! The clients' script, executed by the shells that clients have, as LTSP executes it: under `set -e`, its function after others.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

mod machine;

use eke_apply::boot::ltsp::SCRIPT_TEXT;
use eke_ltsp_conf::options::OPTIONS;
use eke_model::config::{BackendChoice, Enabled, Settings, Source};
use machine::{Client, Ran, SHELLS, shells};

const AUTO: &str = "EKE=auto";

/// Runs a check with each shell of this machine, on a client with these assignments.
fn each(assignments: &[&str], check: impl Fn(&Client, &Ran)) {
    for shell in shells() {
        let client = Client::new();
        check(&client, &client.boot(shell, assignments));
    }
}

/// The client's own eke reads what the script wrote.
fn settings(client: &Client) -> Settings {
    let text = client.read("etc/eke/eke.toml.d/90-ltsp.toml").unwrap();
    Settings::from_sources(&[Source { name: "90-ltsp.toml", text: &text }]).unwrap()
}

#[test]
fn at_least_one_shell_is_here() {
    assert!(!shells().is_empty(), "none of {SHELLS:?} is installed");
}

#[test]
fn options_become_settings_that_eke_accepts() {
    let options = [
        "EKE=auto",
        "EKE_SWAP=zram",
        "EKE_POOL_PERCENT=55",
        "EKE_PREFETCH=auto",
        "EKE_GUARD=off",
        "EKE_METRICS=on",
    ];
    each(&options, |client, ran| {
        assert_eq!((ran.said.as_str(), ran.booted), ("", true));
        let settings = settings(client);
        assert_eq!((settings.swap.backend, settings.swap.pool_percent), (BackendChoice::Zram, 55));
        assert_eq!((settings.guard.enabled, settings.prefetch.enabled), (Enabled::Off, Enabled::Auto));
    });
    each(&[AUTO], |client, ran| {
        assert_eq!(ran.said, "");
        let settings = settings(client);
        assert_eq!((settings.swap.backend, settings.prefetch.enabled), (BackendChoice::Auto, Enabled::Off));
    });
}

#[test]
fn swap_comes_before_the_desktop_and_holds_it_up_for_a_minute_at_most() {
    each(&[AUTO], |client, _| {
        let unit = client.read("etc/systemd/system/eke-ltsp.service").unwrap();
        for line in [
            "Before=display-manager.service eke.service",
            "ExecStart=/usr/bin/eke up --boot --agent none",
            "TimeoutStartSec=60",
        ] {
            assert!(unit.lines().any(|l| l == line), "{line} lacks in\n{unit}");
        }
        for name in ["eke.service", "eke-ltsp.service"] {
            let link = client.link(&format!("etc/systemd/system/multi-user.target.wants/{name}"));
            assert!(link.is_some_and(|to| to.ends_with(name)), "{name}");
        }
        assert!(client.read("etc/systemd/system/eke-ltsp-metrics.service").is_none());
    });
}

#[test]
fn metrics_are_served_only_if_asked_for_and_only_to_the_server() {
    each(&[AUTO, "EKE_METRICS=9000", "EKE_METRICS_FROM=\"10.1.0.0/16 fd00::1\""], |client, _| {
        let unit = client.read("etc/systemd/system/eke-ltsp-metrics.service").unwrap();
        for line in [
            "ExecStart=/usr/bin/eke metrics --listen 192.168.67.20:9000",
            "IPAddressDeny=any",
            "IPAddressAllow=192.168.67.20 192.168.67.1 10.1.0.0/16 fd00::1",
        ] {
            assert!(unit.lines().any(|l| l == line), "{line} lacks in\n{unit}");
        }
    });
}

#[test]
fn metrics_that_nobody_could_read_are_said() {
    each(&[AUTO, "EKE_METRICS=on", "SERVER="], |_, ran| {
        assert!(ran.said.contains("set SERVER or EKE_METRICS_FROM") && ran.booted, "{}", ran.said);
    });
    each(&[AUTO, "EKE_METRICS=on", "IP_ADDRESS="], |client, ran| {
        assert!(ran.said.contains("IP address is unknown") && ran.booted, "{}", ran.said);
        assert!(client.read("etc/systemd/system/eke-ltsp-metrics.service").is_none());
    });
}

#[test]
fn without_swap_the_agent_applies_nothing() {
    each(&[AUTO, "EKE_SWAP=off"], |client, _| {
        let drop_in = client.read("etc/systemd/system/eke.service.d/50-ltsp.conf").unwrap();
        assert!(drop_in.contains("ExecStart=/usr/bin/eke-agent \n"), "{drop_in}");
        assert!(client.read("etc/systemd/system/eke-ltsp.service").is_none());
    });
}

#[test]
fn without_the_line_nothing_is_touched() {
    for shell in shells() {
        let client = Client::new();
        let before = client.tree();
        let ran = client.boot(shell, &["EKE_SWAP=zram"]);
        assert_eq!((ran.said.as_str(), ran.booted), ("", true));
        assert_eq!(client.tree(), before);
    }
}

#[test]
fn without_auto_what_the_image_had_is_switched_off_too() {
    for shell in shells() {
        for assignments in [&["EKE=off"][..], &["EKE="], &[]] {
            let client = Client::new();
            client.enable_in_image();
            let ran = client.boot(shell, assignments);
            assert!(ran.booted && ran.said.is_empty(), "{}", ran.said);
            assert_eq!(client.link("etc/systemd/system/multi-user.target.wants/eke.service"), None);
        }
    }
}

#[test]
fn what_belongs_to_the_machine_of_the_image_is_forgotten() {
    for shell in shells() {
        let client = Client::new();
        client.put("etc/eke/eke.toml", "[swap]\nwriteback_device = \"/dev/sdb1\"\n");
        client.put("etc/eke/eke.toml.d/a.toml", "[swap]\npool_percent = 20\n");
        client.put("var/lib/eke/measured.json", "of the server");
        client.put("etc/ltsp/eke/measured/52:54:00:aa:bb:01.json", "of this client");
        client.put("etc/ltsp/eke/eke.toml", "[agent]\ntick_s = 5\n");
        assert_eq!(client.boot(shell, &[AUTO]).said, "");
        assert_eq!(client.read("var/lib/eke/measured.json").as_deref(), Some("of this client"));
        assert_eq!(client.read("etc/eke/eke.toml").as_deref(), Some("[agent]\ntick_s = 5\n"));
        assert_eq!(client.read("etc/eke/eke.toml.d/a.toml"), None);
    }
}

#[test]
fn a_wrong_value_is_said_on_the_console_and_to_the_server_and_the_client_boots() {
    each(&[AUTO, "EKE_POOL_PERCENT=lots", "EKE_SWOP=zram"], |client, ran| {
        let pool = "eke: EKE_POOL_PERCENT=\"lots\" in ltsp.conf is not valid and ignored: give a number from 10 to 90";
        assert!(ran.said.contains(pool), "{}", ran.said);
        assert!(ran.said.contains("EKE_SWOP in ltsp.conf is no option of eke and ignored"), "{}", ran.said);
        assert!(ran.booted);
        // busybox has a logger of its own, which knows no servers.
        let logged = client.read("logged").unwrap_or_default();
        for part in ["--server 192.168.67.1 --udp", "pc01 52:54:00:aa:bb:01: EKE_POOL_PERCENT"] {
            assert!(ran.is_busybox || logged.contains(part), "{part} lacks in {logged}");
        }
        assert!(client.read("dev/kmsg").unwrap().starts_with("<4>eke: "));
        let other = Client::new();
        other.boot(shells()[0], &[AUTO]);
        assert_eq!(settings(client), settings(&other));
    });
}

/// The server checks `ltsp.conf` by the same rules, before any client boots.
#[test]
fn script_and_server_have_the_same_rules() {
    let values = [
        "auto",
        "off",
        "on",
        "zram",
        "zswap",
        "yes",
        "1",
        "9",
        "10",
        "55",
        "89",
        "90",
        "91",
        "099",
        "100",
        "1023",
        "1024",
        "7118",
        "65535",
        "65536",
        "070118",
        "7 8",
        "-5",
        "+50",
        "10.0.0.1",
        "10.0.0.1 fd00::1/64",
        "all",
        "a;b",
        "*",
        "[a]",
    ];
    for option in &OPTIONS {
        let mut assigned: Vec<String> = Vec::new();
        for value in values {
            let client = Client::new();
            assigned.clear();
            assigned.extend((option.name != "EKE").then(|| AUTO.to_owned()));
            assigned.push(format!("{}='{value}'", option.name));
            let words: Vec<&str> = assigned.iter().map(String::as_str).collect();
            let ran = client.boot(shells()[0], &words);
            assert!(ran.booted, "{words:?}");
            let is_valid = !ran.said.contains(&format!("{}=\"{value}\"", option.name));
            let expected = (option.is_valid)(value);
            // systemd checks an address; a client's shell only its characters.
            let is_looser = option.name == "EKE_METRICS_FROM" && is_valid;
            assert!(is_valid == expected || is_looser, "{}={value}: {}", option.name, ran.said);
        }
    }
}

#[test]
fn a_server_that_is_down_holds_nothing_up() {
    each(&[AUTO, "EKE_SWAP=wrong", "SERVER=192.0.2.1"], |_, ran| assert!(ran.booted));
    for shell in shells() {
        let client = Client::new();
        client.program("logger", "exec sleep 600");
        assert!(client.boot(shell, &[AUTO, "EKE_SWAP=wrong"]).booted);
        client.program("logger", "exit 1");
        assert!(client.boot(shell, &[AUTO, "EKE_SWAP=wrong"]).booted);
    }
}

#[test]
fn a_kernel_without_zram_is_said() {
    for shell in shells() {
        let client = Client::new();
        client.program("modprobe", "exit 1");
        let ran = client.boot(shell, &[AUTO]);
        assert!(ran.said.contains("kernel has no zram module") && ran.booted, "{}", ran.said);
        // The agent and its other remedies start anyway.
        assert!(client.link("etc/systemd/system/multi-user.target.wants/eke.service").is_some());
    }
}

#[test]
fn an_image_without_eke_is_said() {
    for shell in shells() {
        let client = Client::new();
        client.remove("usr/bin/eke");
        let ran = client.boot(shell, &[AUTO]);
        assert!(ran.said.contains("image has no eke: install the package eke") && ran.booted, "{}", ran.said);
        let client = Client::new();
        client.remove("usr/lib/systemd/system/eke.service");
        let ran = client.boot(shell, &[AUTO]);
        assert!(ran.said.contains("image has no eke.service") && ran.booted, "{}", ran.said);
    }
}

#[test]
fn a_root_file_system_that_is_read_only_is_said() {
    for shell in shells() {
        let client = Client::new();
        // A file where the directory would be refuses root, too.
        client.put("etc/eke", "");
        let ran = client.boot(shell, &[AUTO]);
        assert!(ran.said.contains("root file system read-only?") && ran.booted, "{}", ran.said);
    }
}

#[test]
fn an_older_eke_in_the_image_uses_its_defaults() {
    for shell in shells() {
        let client = Client::new();
        let refuses = "if [ -e \"$R/etc/eke/eke.toml.d/90-ltsp.toml\" ]; then echo 'unknown field `guard`' >&2; exit 2; fi";
        client.eke(refuses);
        let ran = client.boot(shell, &[AUTO, "EKE_GUARD=on"]);
        assert!(ran.said.contains("uses its defaults: unknown field `guard`") && ran.booted, "{}", ran.said);
        assert_eq!(client.read("etc/eke/eke.toml.d/90-ltsp.toml"), None);
        client.eke("echo 'cannot execute' >&2; exit 126");
        let ran = client.boot(shell, &[AUTO]);
        assert!(ran.said.contains("eke does not run: cannot execute") && ran.booted, "{}", ran.said);
    }
}

#[test]
fn systemd_accepts_the_units() {
    if let Some(why) = eke_testkit::real::no_program(&["systemd-analyze"]) {
        return eke_testkit::real::skip("systemd_accepts_the_units", &why);
    }
    let client = Client::new();
    client.boot(shells()[0], &[AUTO, "EKE_METRICS=on"]);
    let said = client.verify(&["eke-ltsp.service", "eke-ltsp-metrics.service"]);
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("eke-ltsp")).collect();
    assert!(ours.is_empty(), "{said}");
}

/// LTSP sources all scripts into one shell: names of ours must not be those of its functions.
#[test]
fn every_function_has_our_prefix() {
    let functions: Vec<&str> = SCRIPT_TEXT.lines().filter_map(|line| line.strip_suffix("() {")).collect();
    assert!(functions.len() > 5 && functions.iter().all(|name| name.starts_with("eke_")), "{functions:?}");
    assert!(SCRIPT_TEXT.len() < 10_000, "it is copied into the memory of each client");
}
