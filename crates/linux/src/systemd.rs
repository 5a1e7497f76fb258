//! Names of systemd's units.

/// A path as part of a unit's name: `dev-zram0` for `/dev/zram0`, as `systemd-escape --path` writes it.
pub fn escaped_path(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return "-".to_owned();
    }
    let escaped = parts.join("/").into_bytes().into_iter().enumerate().map(|(at, byte)| match byte {
        b'/' => "-".to_owned(),
        b'.' if at == 0 => "\\x2e".to_owned(),
        b if b.is_ascii_alphanumeric() || b":_.".contains(&b) => char::from(b).to_string(),
        b => format!("\\x{b:02x}"),
    });
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_as_systemd_does() {
        let table = [
            ("/dev/zram0", "dev-zram0"),
            ("/dev/disk/by-id/a-b", "dev-disk-by\\x2did-a\\x2db"),
            ("/", "-"),
            ("//a//b/", "a-b"),
            ("/.a b-c/ü/", "\\x2ea\\x20b\\x2dc-\\xc3\\xbc"),
        ];
        for (path, name) in table {
            assert_eq!(escaped_path(path), name);
        }
    }
}
