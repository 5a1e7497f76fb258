//! Links, CPUs, and their combinations. Pure.

use eke_link::Suite;

/// The link between both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Fast Ethernet.
    Mbit100,
    /// Gigabit Ethernet.
    Gbit1,
    /// No limit: as fast as a veth pair is on this machine.
    Unlimited,
}

impl Rate {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Mbit100, Self::Gbit1, Self::Unlimited];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mbit100 => "100 Mb/s",
            Self::Gbit1 => "1 Gb/s",
            Self::Unlimited => "unlimited",
        }
    }

    /// The name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mbit100 => "100m",
            Self::Gbit1 => "1g",
            Self::Unlimited => "unlimited",
        }
    }

    /// The rate and bucket size of tc's token bucket; `None` for no limit. The bucket must hold the bytes of a 1 ms tick (tc-tbf(8))
    /// and a packet of 64 KiB that is not yet segmented.
    pub fn bucket(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Mbit100 => Some(["100mbit", "128kb"]),
            Self::Gbit1 => Some(["1gbit", "256kb"]),
            Self::Unlimited => None,
        }
    }
}

/// The client's CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpu {
    /// This machine's CPU.
    Full,
    /// Without AES and carry-less multiplication.
    NoAes,
    /// Also without AVX, and so slow that AES128-CTR has 30 MB/s, as on the study's Atom 330.
    Atom,
}

impl Cpu {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Full, Self::NoAes, Self::Atom];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NoAes => "no AES instructions",
            Self::Atom => "Atom-like",
        }
    }

    /// The name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NoAes => "no-aes",
            Self::Atom => "atom",
        }
    }

    /// The CPU features hidden from OpenSSL (OPENSSL_ia32cap(3)): bits 57 (AES) and 33 (PCLMULQDQ); for the Atom also XSAVE, OSXSAVE,
    /// AVX and the whole second word (AVX2, BMI, AVX-512, VAES). SSSE3 stays: the Atom has it.
    pub fn mask(self) -> Option<&'static str> {
        match self {
            Self::Full => None,
            Self::NoAes => Some("~0x200000200000000"),
            Self::Atom => Some("~0x1a00020200000000:~0xffffffffffffffff"),
        }
    }
}

/// One link with one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The link.
    pub link: Rate,
    /// The CPU.
    pub cpu: Cpu,
}

/// The rate of the study's thin client with AES128-CTR.
pub const ATOM_MB_PER_S: f64 = 30.0;

/// All combinations, CPU by CPU.
pub fn settings(links: &[Rate], cpus: &[Cpu]) -> Vec<Setting> {
    cpus.iter().flat_map(|cpu| links.iter().map(|link| Setting { link: *link, cpu: *cpu })).collect()
}

/// The study's cipher with ssh's preferred MAC. eke's policy does not allow it: its tag has 64 bits.
pub fn study() -> Suite {
    Suite::new("aes128-ctr", Some("umac-64-etm@openssh.com"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_settings() {
        let all = settings(&Rate::ALL, &Cpu::ALL);
        assert_eq!(all.len(), 9);
        assert_eq!(all[7], Setting { link: Rate::Gbit1, cpu: Cpu::Atom });
    }
}
