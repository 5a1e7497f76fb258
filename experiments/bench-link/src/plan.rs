//! Links, CPUs, and the settings that they make. Pure.

use eke_link::Suite;

/// The link between both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Fast Ethernet.
    Mbit100,
    /// Gigabit Ethernet.
    Gbit1,
    /// As fast as a veth pair is here.
    Unlimited,
}

impl Rate {
    /// In the order of the report.
    pub const ALL: [Self; 3] = [Self::Mbit100, Self::Gbit1, Self::Unlimited];

    /// In reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mbit100 => "100 Mb/s",
            Self::Gbit1 => "1 Gb/s",
            Self::Unlimited => "unlimited",
        }
    }

    /// On the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mbit100 => "100m",
            Self::Gbit1 => "1g",
            Self::Unlimited => "unlimited",
        }
    }

    /// What tc's token bucket takes: the rate, and a bucket for a tick of 1 ms at least (tc-tbf(8)), and for a packet of 64 KiB that
    /// is not yet cut into frames.
    pub fn bucket(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Mbit100 => Some(["100mbit", "128kb"]),
            Self::Gbit1 => Some(["1gbit", "256kb"]),
            Self::Unlimited => None,
        }
    }
}

/// The CPU of the near end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpu {
    /// As it is.
    Full,
    /// Without AES and carry-less multiplication.
    NoAes,
    /// Without AVX too, and so slow that AES128-CTR does 30 MB/s, as the study's Atom 330 did.
    Atom,
}

impl Cpu {
    /// In the order of the report.
    pub const ALL: [Self; 3] = [Self::Full, Self::NoAes, Self::Atom];

    /// In reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NoAes => "no AES instructions",
            Self::Atom => "Atom-like",
        }
    }

    /// On the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NoAes => "no-aes",
            Self::Atom => "atom",
        }
    }

    /// What OpenSSL is to see of the processor (OPENSSL_ia32cap(3)): bits 57 (AES) and 33 (PCLMULQDQ) taken away; for the Atom
    /// also XSAVE, OSXSAVE, AVX and everything of the second word (AVX2, BMI, AVX-512, VAES). SSSE3 stays, as the Atom has it.
    pub fn mask(self) -> Option<&'static str> {
        match self {
            Self::Full => None,
            Self::NoAes => Some("~0x200000200000000"),
            Self::Atom => Some("~0x1a00020200000000:~0xffffffffffffffff"),
        }
    }
}

/// One of them each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The link.
    pub link: Rate,
    /// The CPU.
    pub cpu: Cpu,
}

/// What the study's thin client did with AES128-CTR.
pub const ATOM_MB_PER_S: f64 = 30.0;

/// All of them, by CPU.
pub fn settings(links: &[Rate], cpus: &[Cpu]) -> Vec<Setting> {
    cpus.iter().flat_map(|cpu| links.iter().map(|link| Setting { link: *link, cpu: *cpu })).collect()
}

/// The study's cipher, with the MAC that ssh takes first by itself. Not among what eke's policy allows: its tag has 64 bits.
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
