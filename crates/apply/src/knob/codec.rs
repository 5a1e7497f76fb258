//! Decodes the text of settings.

use eke_linux::parse::lru_gen;
use eke_linux::parse::zram::bracketed;

/// How a setting's text when read relates to its text when written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Reads as written, except for white space.
    Plain,
    /// Reads as `Y` or `N`; `1` and `0` are accepted, too.
    Bool,
    /// Reads as a list with the current value in brackets: `lzo [lz4] zstd`.
    Bracketed,
    /// Cannot be read, or reads as something else.
    WriteOnly,
    /// A mask that reads as `0x0007`. Its first bit switches; the others say what may be used, and read as 0 where the CPU cannot
    /// (Documentation/admin-guide/mm/multigen_lru.rst).
    LruGen,
    /// One line per disk: `MAJOR:MINOR KEY=VALUE...`. A disk without a line has no target.
    LatencyOfDisk,
    /// The same; a disk without a line is not controlled.
    QosOfDisk,
    /// The same; a disk without a line has the kernel's default model.
    ModelOfDisk,
}

impl Codec {
    /// Decodes the text that the kernel shows.
    pub fn decode(self, text: &str) -> String {
        let text = text.trim();
        match self {
            Self::Bool => match text {
                "1" | "y" | "Y" => "Y".into(),
                "0" | "n" | "N" => "N".into(),
                other => other.into(),
            },
            Self::Bracketed => bracketed(text).unwrap_or(text).into(),
            _ => text.into(),
        }
    }

    /// The value of a disk without a line; `None` for settings that have no lines per disk.
    fn of_disk(self) -> Option<&'static str> {
        match self {
            Self::LatencyOfDisk => Some("target=max"),
            Self::QosOfDisk => Some("enable=0"),
            Self::ModelOfDisk => Some("ctrl=auto"),
            _ => None,
        }
    }

    /// Whether it has lines per disk, so that a value names its disk.
    pub fn is_per_disk(self) -> bool {
        self.of_disk().is_some()
    }

    /// Decodes the text that the kernel shows; if it has lines per disk, the line of the disk in `written`.
    pub fn decode_for(self, text: &str, written: &str) -> String {
        let Some(otherwise) = self.of_disk() else { return self.decode(text) };
        let disk = written.split_whitespace().next().unwrap_or_default();
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(disk));
        line.map_or_else(|| format!("{disk} {otherwise}"), |line| line.trim().to_owned())
    }

    /// Whether two texts mean the same value. A disk's line may be written in part; the kernel shows all of it.
    pub fn same(self, a: &str, b: &str) -> bool {
        if self == Self::LruGen {
            return lru_gen::is_on(a).is_some() && lru_gen::is_on(a) == lru_gen::is_on(b);
        }
        if self.of_disk().is_none() {
            return self.decode(a) == self.decode(b);
        }
        let within = |part: &str, all: &str| {
            part.split_whitespace().all(|word| all.split_whitespace().any(|other| same_word(word, other)))
        };
        within(a, b) || within(b, a)
    }
}

/// The kernel shows `rpct=95` as `rpct=95.00`.
fn same_word(a: &str, b: &str) -> bool {
    let number = |word: &str| {
        let (key, value) = word.split_once('=')?;
        Some((key.to_owned(), value.parse::<f64>().ok()?))
    };
    a == b || number(a).is_some_and(|a| number(b) == Some(a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_read_what_kernels_show() {
        assert_eq!(Codec::Bracketed.decode("lzo-rle [lz4] zstd\n"), "lz4");
        assert_eq!(Codec::Bool.decode("Y\n"), Codec::Bool.decode("1"));
        assert!(Codec::Plain.same("60\n", "60"));
        assert!(Codec::LruGen.same("0x0003\n", "0x0007") && !Codec::LruGen.same("0x0000", "0x0007"));
    }

    #[test]
    fn a_disks_line_is_found_and_compared() {
        let codec = Codec::QosOfDisk;
        let shown = "8:0 enable=1 ctrl=user rpct=95.00 rlat=5000\n8:16 enable=0 ctrl=auto\n";
        let now = codec.decode_for(shown, "8:0 enable=1");
        assert_eq!(now, "8:0 enable=1 ctrl=user rpct=95.00 rlat=5000");
        assert!(codec.same(&now, "8:0 enable=1 rpct=95") && !codec.same(&now, "8:0 enable=0"));
        assert_eq!(codec.decode_for(shown, "259:0 enable=1"), "259:0 enable=0");
        assert_eq!(Codec::LatencyOfDisk.decode_for("", "8:0 target=10"), "8:0 target=max");
        assert_eq!(Codec::Plain.decode_for("5\n", "7"), "5");
    }
}
