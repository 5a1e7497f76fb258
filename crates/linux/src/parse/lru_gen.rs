//! `/sys/kernel/mm/lru_gen/enabled` (Linux 6.1).

/// Is the multi-generational LRU on? A mask in hexadecimal whose first bit is the switch. `None` for other text.
pub fn is_on(text: &str) -> Option<bool> {
    let mask = u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()?;
    Some(mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bit_switches() {
        assert_eq!(
            ["0x0007\n", "0x0001", "0x0000", "0x0006", "y", ""].map(is_on),
            [Some(true), Some(true), Some(false), Some(false), None, None]
        );
    }
}
