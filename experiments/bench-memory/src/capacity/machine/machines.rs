//! The machines and the peers. Pure.

use eke_model::units::Bytes;

use super::mib;
use crate::experiment::{BALLAST_RATIO, Error, Options};
use crate::guest::Peer;

/// The default RAM of the machines: that of the study's client and of its laptop.
const CLIENT_MIB: u32 = 124;
const LAPTOP_MIB: u32 = 384;
/// RAM beside the ballast: for the kernel, a screen, a window manager, and one document but not two.
const FOR_ONE_MIB: u32 = 116;
/// The kernel's table of pages grows with the RAM: 64 bytes of 4096 (`struct page`).
const PER_PAGE_TABLE: u32 = 64;

/// A machine, with a ballast that stands for the rest of a desktop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Small {
    pub memory_mib: u32,
    pub ballast: Bytes,
}

impl Small {
    fn new(memory_mib: u32, ballast: Option<Bytes>) -> Self {
        let table = memory_mib.saturating_sub(CLIENT_MIB) / PER_PAGE_TABLE;
        let own = memory_mib.saturating_sub(FOR_ONE_MIB + table);
        Self { memory_mib, ballast: ballast.unwrap_or(Bytes::mib(own.into())) }
    }

    /// For the report.
    pub fn note(&self) -> String {
        format!(
            "The machine of {} MiB has a ballast of {} ({} to 1, filled once), so that one document fits without swap.",
            self.memory_mib, self.ballast, BALLAST_RATIO
        )
    }
}

/// The machine that the user chose, or the study's machines; only the first in a quick run.
pub(super) fn machines(options: &Options) -> Vec<Small> {
    let of = |memory_mib| Small::new(memory_mib, options.ballast);
    match options.memory {
        Some(memory) => vec![of(u32::try_from(mib(memory)).unwrap_or(u32::MAX))],
        None if options.quick => vec![of(CLIENT_MIB)],
        None => vec![of(CLIENT_MIB), of(LAPTOP_MIB)],
    }
}

/// The number of rounds.
pub(super) fn repeats(options: &Options) -> usize {
    if options.quick { 1 } else { options.repeats }
}

/// The peers that the user chose, in the order of the table.
pub(super) fn chosen(options: &Options) -> Result<Vec<Peer>, Error> {
    let mut peers = Peer::all();
    if options.variations {
        peers.extend(variations());
    }
    let known: Vec<String> = peers.iter().map(Peer::name).collect();
    if let Some(name) = options.variants.iter().find(|name| !known.contains(name)) {
        return Err(Error::NoVariant { name: name.clone(), known });
    }
    let wanted = |peer: &Peer| match (options.variants.as_slice(), options.quick) {
        ([], false) => true,
        ([], true) => is_quick(peer),
        (named, _) => named.contains(&peer.name()),
    };
    Ok(peers.into_iter().filter(wanted).collect())
}

fn is_quick(peer: &Peer) -> bool {
    match peer {
        Peer::Nothing | Peer::ZramTools | Peer::ZswapLaptop => true,
        Peer::Eke { disk, arguments } => !disk && arguments.is_empty(),
        _ => false,
    }
}

/// eke without its guard, without its agent, with the kernel's default algorithm, and with the one of most guides.
fn variations() -> Vec<Peer> {
    let with = |words: [&str; 2]| Peer::Eke { disk: false, arguments: words.map(Into::into).into() };
    vec![
        with(["--config", "/etc/eke/no-guard.toml"]),
        with(["--agent", "none"]),
        with(["--algorithm", "lzo-rle"]),
        with(["--algorithm", "zstd"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options {
            quick: false,
            repeats: 3,
            memory: None,
            ballast: None,
            disk: None,
            viewer: None,
            documents: None,
            variants: Vec::new(),
            variations: false,
            kernel_of: None,
        }
    }

    fn names(options: &Options) -> Vec<String> {
        chosen(options).unwrap().iter().map(Peer::name).collect()
    }

    #[test]
    fn two_machines_unless_one_is_asked_for() {
        let sizes =
            |options| machines(&options).iter().map(|m| (m.memory_mib, mib(m.ballast))).collect::<Vec<_>>();
        assert_eq!(sizes(options()), [(124, 8), (384, 264)]);
        assert_eq!(sizes(Options { quick: true, ..options() }), [(124, 8)]);
        let own = Options { memory: Some(Bytes::mib(200)), ballast: Some(Bytes::mib(9)), ..options() };
        assert_eq!(sizes(own), [(200, 9)]);
        assert_eq!(sizes(Options { memory: Some(Bytes::mib(64)), ..options() }), [(64, 0)]);
    }

    #[test]
    fn a_quick_run_is_one_of_four() {
        let quick = Options { quick: true, ..options() };
        assert_eq!(names(&quick), ["nothing", "zram-tools", "zswap as on the laptop", "eke"]);
        assert_eq!((repeats(&quick), repeats(&options())), (1, 3));
    }

    #[test]
    fn only_known_names_are_taken() {
        let named = Options { variants: vec!["eke".into(), "nothing".into()], ..options() };
        assert_eq!(names(&named), ["nothing", "eke"]);
        let unknown = Options { variants: vec!["eko".into()], ..options() };
        assert!(chosen(&unknown).unwrap_err().to_string().contains("\"eko\""));
        assert_eq!(names(&Options { variations: true, ..options() }).last().unwrap(), "eke --algorithm zstd");
    }
}
