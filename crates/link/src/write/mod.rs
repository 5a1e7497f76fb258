//! The decision as configuration: text in, text out. Nothing here writes a file.

pub mod diff;
pub mod host_block;
pub mod ltsp_section;

/// The settings to write for a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<'a> {
    /// Ciphers, the chosen one first. The policy allows all of them, so that a far end which loses one still gets a safe one.
    pub ciphers: &'a [String],
    /// MACs for those that need one.
    pub macs: &'a [String],
    /// Set compression? `None`: unknown, and the present setting stays.
    pub compression: Option<bool>,
    /// A comment for people, one line.
    pub about: &'a str,
}

impl Setting<'_> {
    /// The comment without control characters, which could end the line.
    fn comment(&self) -> String {
        self.about.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Setting;

    /// Settings for tests.
    pub fn with<T>(then: impl FnOnce(&Setting<'_>) -> T) -> T {
        let ciphers = ["chacha20-poly1305@openssh.com".to_owned(), "aes128-ctr".to_owned()];
        let macs = ["umac-128-etm@openssh.com".to_owned()];
        then(&Setting {
            ciphers: &ciphers,
            macs: &macs,
            compression: None,
            about: "chacha20-poly1305, 61 MB/s\nlimit: one thread of that CPU",
        })
    }
}
