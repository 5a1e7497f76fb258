//! The shell script of a run in a guest. Pure.

use eke_bench_desktop::session::{Act, Spec};
use eke_model::units::Bytes;

use super::peer::{FEDORA, Peer};

/// Functions of every script.
pub const LIBRARY: &str = include_str!("lib.sh");
/// A line that does not occur in JSON.
const END: &str = "EKE-GUEST-END";

/// The script of a run: sets the peer up, runs the session, prints the kernel's counters. `measured` is the result of [`measuring`]. Only
/// eke reads it.
///
/// # Errors
/// The session has no JSON (a number is NaN).
pub fn script(peer: &Peer, spec: &Spec, measured: Option<&str>) -> serde_json::Result<String> {
    let measured = measured.map(|text| file("/var/lib/eke/measured.json", text)).unwrap_or_default();
    let session = file("/tmp/session.json", &serde_json::to_string(spec)?);
    Ok(format!("{LIBRARY}\n{measured}{session}{}session\n", set_up(peer)))
}

/// The script of the boot before: `eke up`, measuring, while the session's first document is open.
///
/// # Errors
/// As [`script`].
pub fn measuring(peer: &Peer, spec: &Spec) -> serde_json::Result<String> {
    const LONG: Act = Act::Rest { ms: 3_600_000 };
    let spec = Spec { acts: vec![Act::Open { document: 0 }, LONG], ..spec.clone() };
    let session = file("/tmp/session.json", &serde_json::to_string(&spec)?);
    let disk = if peer.disk().is_some() { "disk_swap\n" } else { "" };
    Ok(format!("{LIBRARY}\n{session}{disk}measure{}\n", words(peer)))
}

fn set_up(peer: &Peer) -> String {
    match peer {
        Peer::Nothing => String::new(),
        Peer::Zram { size: Bytes(bytes) } => format!("zram_swap {bytes} '' 100\n"),
        Peer::ZramTools => "zram_tools\n".into(),
        Peer::ZramGenerator => "zram_generator '' \"$(ram 0.5)\"\n".into(),
        Peer::Fedora => format!("zram_generator {} \"$(ram 1)\"\n", quoted(FEDORA)),
        Peer::ChromeOs => "say by values\nzram_swap \"$(ram 2)\" '' 100\n".into(),
        Peer::TunedZram => "say by values\nzram_tuned\n".into(),
        Peer::DiskSwap => "disk_swap\n".into(),
        Peer::ZswapDefaults => "zswap\n".into(),
        Peer::ZswapLaptop => "say by values\nzswap deflate zsmalloc 90\n".into(),
        Peer::ZswapZstd => "say by values\nzswap zstd zsmalloc 90\n".into(),
        Peer::Eke { disk, .. } => {
            let disk = if *disk { "disk_swap\n" } else { "" };
            format!("{disk}eke_up{}\n", words(peer))
        }
    }
}

/// The arguments for `eke up`, each with a blank before it.
fn words(peer: &Peer) -> String {
    let Peer::Eke { arguments, .. } = peer else { return String::new() };
    arguments.iter().map(|word| format!(" {}", quoted(word))).collect()
}

/// One word for the shell, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Makes a file with one line of text.
fn file(path: &str, text: &str) -> String {
    let line = text.replace('\n', " ");
    format!("mkdir -p \"$(dirname {path})\"\ncat >{path} <<'{END}'\n{line}\n{END}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_bench_desktop::session::Ballast;

    fn spec() -> Spec {
        Spec {
            screen: (800, 600),
            viewer: "xpdf".into(),
            documents: vec!["/documents/it's a.pdf".into()],
            ballast: Ballast { size: Bytes::mib(8), ratio: 3.0 },
            merge_same_pages: false,
            acts: vec![Act::Open { document: 0 }, Act::Browse { document: 0, pages: 10, back: false }],
            patience_s: 150.0,
            expected: Vec::new(),
        }
    }

    fn body(text: &str) -> &str {
        text.strip_prefix(LIBRARY).unwrap_or("no library")
    }

    #[test]
    fn every_peer_has_its_script() {
        let script = |peer: &Peer| script(peer, &spec(), Some("{\n\"kernel\": \"6.1\"}")).unwrap();
        let text: Vec<String> =
            Peer::all().iter().map(|peer| format!("# {}\n{}", peer.name(), set_up(peer))).collect();
        insta::assert_snapshot!("set_up", text.join("\n"));
        let eke = Peer::Eke { disk: true, arguments: vec!["--algorithm".into(), "lz4; reboot".into()] };
        insta::assert_snapshot!("eke", body(&script(&eke)));
        insta::assert_snapshot!("measuring", body(&measuring(&eke, &spec()).unwrap()));
    }

    #[test]
    fn a_shell_takes_every_script() {
        for peer in Peer::all() {
            for text in [script(&peer, &spec(), Some("{}")), measuring(&peer, &spec())] {
                let checked = std::process::Command::new("sh").args(["-n", "-c", &text.unwrap()]).status();
                assert!(checked.unwrap().success(), "{}", peer.name());
            }
        }
    }

    #[test]
    fn no_word_leaves_its_quotes() {
        let text = format!("printf %s {}", quoted("it's $(date) `date`\n\\"));
        let output = std::process::Command::new("sh").args(["-c", &text]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "it's $(date) `date`\n\\");
    }
}
