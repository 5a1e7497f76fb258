//! Files of boot loaders and init systems: edits and their undo.

use eke_apply::boot::enable::rc_local;
use eke_apply::boot::{entries, extlinux, grub, initramfs, words};
use eke_apply::files::{self, Change};
use eke_linux::Root;
use eke_linux::error::Result;

use crate::input::{Input, text};
use crate::scratch;

fn ours() -> Vec<String> {
    ["zswap.enabled=1", "zswap.compressor=zstd"].map(str::to_owned).into()
}

fn modules() -> Vec<String> {
    ["zstd", "lzo-rle"].map(str::to_owned).into()
}

/// All edits, by number.
fn edited(which: u8, text: &str) -> Result<String> {
    match which % 10 {
        0 => grub::with_words(text, &ours()),
        1 => extlinux::with_words(text, &ours()),
        2 => extlinux::defaults_with_words(text, &ours()),
        3 => extlinux::firmware_with_words(text, &ours()),
        4 => entries::with_words(text, &ours()),
        5 => entries::cmdline_with_words(text, &ours()),
        6 => words::with_words(text, &ours()),
        7 => Ok(initramfs::tools_with_modules(text, &modules())),
        8 => initramfs::mkinitcpio_with_modules(text, &modules()),
        _ => Ok(rc_local::with_block(Some(text), "# eke begin: x\nrun &\n# eke end\n")),
    }
}

/// Does a shell's file keep every line that sets none of our variables? Values over several lines are left out.
fn keeps_lines(before: &str, after: &str) -> bool {
    let counts = |line: &str, c: char| line.matches(c).count();
    let is_open = |line: &str| {
        let is_quoted = ['"', '\''].iter().any(|c| counts(line, *c) % 2 == 1);
        is_quoted || line.ends_with('\\') || counts(line, '(') != counts(line, ')')
    };
    let is_ours =
        |line: &str| ["GRUB_CMDLINE", "U_BOOT_PARAMETERS", "MODULES"].iter().any(|name| line.contains(name));
    let mut kept = after.split('\n');
    let mut others = before.split('\n').filter(|line| !line.is_empty() && !is_ours(line));
    before.split('\n').any(is_open) || others.all(|line| kept.any(|other| other == line))
}

/// Removes spaces, quotation marks and our words.
fn others(which: u8, text: &str) -> String {
    let is_ours = |word: &String| {
        let key = word.split('=').next().unwrap_or_default().replace('-', "_");
        key == "zswap.enabled" || key == "zswap.compressor"
    };
    let words: Vec<String> =
        if which % 10 == 6 { kernel_words(text) } else { text.lines().flat_map(kernel_words).collect() };
    words.into_iter().filter(|word| !is_ours(word)).flat_map(|word| squeezed(&word)).collect()
}

fn squeezed(word: &str) -> Vec<char> {
    word.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Words as the kernel splits them, without their quotation marks: spaces inside double quotation marks do not split, and a single one
/// is not a quotation mark (`next_arg` in lib/cmdline.c). Spaces are those of lib/ctype.c: of ASCII, and the byte A0.
fn kernel_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            '\t'..='\r' | ' ' if !is_quoted => words.push(String::new()),
            c => {
                words.last_mut().into_iter().for_each(|word| word.push(c));
                if c.to_string().as_bytes().last() == Some(&0xa0) && !is_quoted {
                    words.push(String::new());
                }
            }
        }
    }
    words
}

fn is_subsequence(part: &str, of: &str) -> bool {
    let mut of = of.chars();
    part.chars().all(|c| of.any(|other| other == c))
}

/// An edit changes only our words, and a second edit changes nothing.
pub fn boot_files(data: &[u8]) {
    let mut input = Input(data);
    let which = input.u8();
    let before = text(input.0);
    let Ok(after) = edited(which, &before) else { return };
    assert_eq!(edited(which, &after).ok().as_ref(), Some(&after), "twice is not once");
    let is_kept = match which % 10 {
        0 | 2 | 8 => keeps_lines(&before, &after),
        // a block of ours may be replaced
        9 if before.contains("# eke begin") => true,
        _ => is_subsequence(&others(which, &before), &others(which, &after)),
    };
    assert!(is_kept, "{before:?} became {after:?}");
    for word in ours().iter().filter(|_| matches!(which % 10, 2 | 3 | 5 | 6)) {
        assert!(after.contains(word.as_str()), "{word} is not in {after:?}");
    }
}

/// The undo restores a file byte for byte, and leaves alone what others changed meanwhile.
pub fn boot_undo(data: &[u8]) {
    let mut input = Input(data);
    let (which, is_changed) = (input.u8(), input.u8() == 1);
    let Ok(before) = std::str::from_utf8(input.0) else { return };
    let Ok(after) = edited(which, before) else { return };
    let dir = scratch::empty("boot");
    let path = dir.join("etc/file");
    std::fs::create_dir_all(dir.join("etc")).expect("a directory");
    std::fs::write(&path, before).expect("a file");
    let root = Root::at(&dir);
    let changes = [Change::text("etc/file", after.clone()), Change::text("etc/new", after.clone())];
    files::apply(&root, "fuzz", &changes, "why").expect("files in a directory of our own");
    assert_eq!(std::fs::read_to_string(&path).ok(), Some(after.clone()));
    let theirs = format!("{after}# theirs\n");
    if is_changed {
        std::fs::write(&path, &theirs).expect("a file");
    }
    files::revert(&root, "fuzz").expect("files in a directory of our own");
    let left = std::fs::read_to_string(&path).ok();
    assert_eq!(left.as_deref(), Some(if is_changed { &theirs[..] } else { before }));
    assert!(!dir.join("etc/new").exists());
}
