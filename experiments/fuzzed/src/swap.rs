//! Inputs of compressed swap.

use eke_swap::live::facts::recompress_priorities;
use eke_swap::measure::decode;
use eke_swap::probe::parse;

use crate::input::two;

/// Files of `/sys` and `/proc/PID`, and settings of zram managers.
pub fn swap_texts(data: &[u8]) {
    let (text, key) = two(data);
    let _ = (
        eke_linux::parse::cpu_list::count(&text),
        parse::cmdline_value(&text, &key),
        parse::has_module(&text, &key),
    );
    let _ = (parse::shell_value(&text, &key), parse::zram_sections(&text), parse::crypto_compressors(&text));
    let _ = (parse::tuned_profile(&text), parse::sysctl_values(&text));
    let _ = (parse::fail_swap_on(&text), parse::kubelet_options(parse::words(&text)));
    let _ = (
        parse::is_root(&text),
        recompress_priorities(&text),
        decode::status(&text),
        decode::pinned_ranges(&text),
    );
    let ranges = decode::private_ranges(&text);
    assert!(ranges.iter().all(|range| range.start <= range.end));
}
