//! What a console shows that must not happen. Pure.

/// Lines of a console that are a defect: of the kernel, or a shutdown that waits.
#[must_use]
pub fn defects(console: &str) -> Vec<String> {
    let marks = [
        "BUG:",
        "Oops:",
        "Kernel panic",
        "general protection fault",
        "double fault",
        "blocked for more than",
        "stop job is running",
        "Failed unmounting",
        "Failed to unmount",
        "Failed deactivating swap",
        "WARNING: CPU",
    ];
    let known = |line: &&str| marks.iter().any(|mark| line.contains(mark));
    let mut lines: Vec<String> = console.lines().filter(known).map(|line| line.trim().to_owned()).collect();
    lines.dedup();
    lines
}

/// Text without a terminal's control sequences: ESC, `[`, parameters, a letter.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            '\u{1b}' => {
                let _ = rest.by_ref().skip_while(|c| *c == '[').find(char::is_ascii_alphabetic);
            }
            '\n' | '\t' => plain.push(character),
            character if character.is_control() => {}
            character => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{defects, plain};

    #[test]
    fn control_sequences_are_taken_out() {
        assert_eq!(
            plain("\u{1b}[!p\u{1b}[?7h\u{1b}[6n[\u{1b}[0;1;31mFAILED\u{1b}[0m] x\r\n"),
            "[FAILED] x\n"
        );
        assert_eq!(plain("\u{1b}"), "");
    }

    #[test]
    fn only_defects_are_found() {
        let console = "[  1.0] ok\n[FAILED] Failed unmounting srv-www.mount\n[  2.0] BUG: soft lockup\n[ OK ] Unmounted /srv\n";
        assert_eq!(defects(console).len(), 2);
        assert!(defects("all is well\n").is_empty());
    }
}
