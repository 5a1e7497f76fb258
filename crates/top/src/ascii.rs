//! The screen in ASCII, for the Linux console and locales other than UTF-8.

use ratatui::buffer::Buffer;

/// Replaces each character that is not ASCII by the most similar one.
pub fn fold(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if let Some(plain) = cell.symbol().chars().next().filter(|c| !c.is_ascii()).map(plain) {
            cell.set_char(plain);
        }
    }
}

/// Keeps the parts of the memory bar, and the steps of a curve, different from each other.
fn plain(c: char) -> char {
    match c {
        '█' => '#',
        '▓' => '=',
        '▒' => '+',
        '░' => '-',
        '·' | '▁' => '.',
        '▂' => '_',
        '▃' => '-',
        '▄' => '=',
        '▅' => '+',
        '▆' => 'o',
        '▇' => 'O',
        '─' => '-',
        '│' => '|',
        '┌' | '┐' | '└' | '┘' => '+',
        '…' => '~',
        'µ' => 'u',
        '↑' => '^',
        '↓' => 'v',
        '×' => 'x',
        _ => '?',
    }
}

/// True if the terminal shows ASCII only, by the locale's variables in their order (locale(7): `LC_ALL`, `LC_CTYPE`, `LANG`) and `TERM`:
/// the Linux console has UTF-8 but a font of 256 or 512 characters.
pub fn is_enough(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| variable(name)).find(|v| !v.is_empty());
    let is_utf8 = locale.is_some_and(|l| {
        let l = l.to_ascii_lowercase();
        l.contains("utf-8") || l.contains("utf8")
    });
    !is_utf8 || variable("TERM").as_deref() == Some("linux")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enough(variables: &[(&str, &str)]) -> bool {
        is_enough(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn the_locale_and_the_console_decide() {
        assert!(!enough(&[("LANG", "de_DE.UTF-8"), ("TERM", "xterm")]));
        assert!(!enough(&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(enough(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")]));
        assert!(enough(&[("LANG", "de_DE.UTF-8"), ("TERM", "linux")]));
        assert!(enough(&[]));
    }

    #[test]
    fn parts_and_steps_stay_different() {
        for signs in ["█▓▒░·", "▁▂▃▄▅▆▇█"] {
            let plain: std::collections::BTreeSet<char> = signs.chars().map(plain).collect();
            assert_eq!(plain.len(), signs.chars().count());
            assert!(!plain.contains(&'?'));
        }
    }
}
