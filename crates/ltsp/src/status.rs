//! What the server shows of its clients: from their pages of metrics alone.

use std::io;

use eke_metrics::parse::{Row, rows};
use serde::Serialize;

use crate::clients::Client;

/// Below this share of RAM, what is left for programs is short.
const SHORT_RAM: f64 = 0.1;
/// Below this share of its size, swap is short.
const SHORT_SWAP: f64 = 0.1;
/// Of a client's word: it can be any text.
const LONGEST: usize = 64;

/// `eke ltsp status --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// Whether the clients' script is installed on this server.
    pub is_installed: bool,
    /// Whether `ltsp.img` has this eke's script.
    pub is_in_boot_image: bool,
    /// What the administrator should know, one sentence each.
    pub notes: Vec<String>,
    /// The clients by name.
    pub clients: Vec<ClientStatus>,
}

/// A client.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientStatus {
    /// Its name.
    pub name: String,
    /// Its hardware address.
    pub mac: Option<String>,
    /// Its address.
    pub ip: Option<String>,
    /// `EKE=auto` holds for it in `ltsp.conf`.
    pub is_on: bool,
    /// The cipher that `eke link --ltsp` chose.
    pub cipher: Option<String>,
    /// The rate that it measured.
    pub mb_per_s: Option<u32>,
    /// Why there are no measurements.
    pub silent: Option<String>,
    /// What the client measures; null if it does not answer.
    pub measured: Option<Measured>,
}

/// What a client measures.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// The version of its eke.
    pub version: Option<String>,
    /// RAM that its kernel manages.
    pub ram_bytes: Option<u64>,
    /// RAM available to new programs.
    pub available_bytes: Option<u64>,
    /// Processes that the kernel killed for lack of memory since boot.
    pub oom_kills: u64,
    /// What is short: memory, swap; empty if nothing is.
    pub short: Vec<String>,
    /// The compressed swap in use.
    pub backend: Option<String>,
    /// Whether eke's plan is applied.
    pub is_applied: bool,
    /// Whether eke reads files ahead of launches.
    pub is_prefetching: bool,
    /// RAM that compression saves.
    pub saved_bytes: Option<u64>,
}

/// What a client's page says.
///
/// # Errors
/// Why there are no measurements, as a sentence.
pub fn answer(page: io::Result<String>) -> Result<Measured, String> {
    page.map_err(|e| format!("no answer: {e}")).and_then(|text| measured(&text))
}

/// A client's row. `answer`: of its page; `None` if it cannot be asked.
pub fn client(client: &Client, answer: Option<Result<Measured, String>>) -> ClientStatus {
    let (measured, silent) = match answer {
        Some(Ok(measured)) => (Some(measured), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, Some(silence(client).to_owned())),
    };
    ClientStatus {
        name: client.name.clone(),
        mac: client.mac.clone(),
        ip: client.ip.map(|ip| ip.to_string()),
        is_on: client.is_on,
        cipher: client.link.as_ref().map(|link| link.cipher.clone()),
        mb_per_s: client.link.as_ref().and_then(|link| link.mb_per_s),
        silent,
        measured,
    }
}

fn silence(client: &Client) -> &'static str {
    match (client.is_on, client.port, client.ip) {
        (false, ..) => "eke is off: EKE=auto is missing in ltsp.conf",
        (_, None, _) => "not asked: EKE_METRICS=on is missing in ltsp.conf",
        _ => "not running: it has no lease and no known address",
    }
}

/// Is it a page of eke's?
pub fn is_eke(page: &str) -> bool {
    rows(page).iter().any(|row| row.name == "eke_build_info")
}

fn measured(text: &str) -> Result<Measured, String> {
    let rows = rows(text);
    let find = |name: &str| rows.iter().find(|row| row.name == name);
    if !is_eke(text) {
        return Err("the answer has no metrics of eke: another program has that port".to_owned());
    }
    let value = |name: &str| find(name).map(|row| row.value);
    let bytes = |name: &str| value(name).map(whole);
    let label =
        |name: &str, label: &str| find(name).and_then(|row: &Row| row.label(label)).map(str::to_owned);
    let is = |name: &str| value(name) == Some(1.0);
    Ok(Measured {
        version: label("eke_build_info", "version").filter(|version| is_version(version)),
        ram_bytes: bytes("eke_ram_bytes"),
        available_bytes: bytes("eke_available_bytes"),
        oom_kills: bytes("eke_oom_kills_total").unwrap_or_default(),
        short: short(&value),
        backend: label("eke_backend_info", "backend").filter(|b| b != "none" && b.len() <= LONGEST),
        is_applied: is("eke_plan_applied"),
        is_prefetching: is("eke_prefetch_reading_ahead"),
        saved_bytes: bytes("eke_compressed_saved_bytes"),
    })
}

/// A version is printed in a note to the administrator: a client's can be any text.
fn is_version(text: &str) -> bool {
    text.len() <= LONGEST && text.chars().all(|c| c.is_ascii_alphanumeric() || ".+~-".contains(c))
}

/// Negative values and NaN are 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating, as documented")]
fn whole(value: f64) -> u64 {
    value as u64
}

fn short(value: &dyn Fn(&str) -> Option<f64>) -> Vec<String> {
    let is_low = |part: &str, whole: &str, share: f64| match (value(part), value(whole)) {
        (Some(part), Some(whole)) => whole > 0.0 && part < whole * share,
        _ => false,
    };
    let memory = is_low("eke_available_bytes", "eke_ram_bytes", SHORT_RAM).then_some("memory");
    let swap = is_low("eke_swap_free_bytes", "eke_swap_size_bytes", SHORT_SWAP).then_some("swap");
    memory.into_iter().chain(swap).map(str::to_owned).collect()
}

/// Versions of eke on clients that differ from this one, as one sentence: they work, but options that are newer than a client's eke do not.
pub fn versions(clients: &[ClientStatus], own: &str) -> Option<String> {
    let mut others: Vec<&str> = clients
        .iter()
        .filter_map(|c| c.measured.as_ref()?.version.as_deref())
        .filter(|v| *v != own)
        .collect();
    others.sort_unstable();
    others.dedup();
    (!others.is_empty()).then(|| {
        format!(
            "clients run eke {} and this server {own}: upgrade eke in their image, then run `ltsp image`",
            others.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# TYPE eke_ram_bytes gauge\neke_ram_bytes 260046848\neke_available_bytes 20000000\n\
        eke_oom_kills_total 2\neke_plan_applied 1\neke_backend_info{backend=\"zram (zstd)\"} 1\n\
        eke_compressed_saved_bytes 104857600\neke_swap_size_bytes 100\neke_swap_free_bytes 50\n\
        eke_build_info{version=\"0.0.9\"} 1\n";

    fn known() -> Client {
        Client {
            name: "pc01".into(),
            mac: None,
            ip: "10.0.0.1".parse().ok(),
            is_on: true,
            port: Some(1),
            link: None,
            is_guess: false,
        }
    }

    #[test]
    fn a_page_becomes_a_row() {
        let shown = client(&known(), Some(answer(Ok(PAGE.to_owned()))));
        let measured = shown.measured.as_ref().unwrap();
        assert_eq!(measured.short, ["memory"]);
        assert_eq!(measured.backend.as_deref(), Some("zram (zstd)"));
        assert_eq!((measured.saved_bytes, measured.oom_kills), (Some(100 << 20), 2));
        assert!(measured.is_applied && !measured.is_prefetching && shown.silent.is_none());
        let sentence = versions(&[shown], "0.1.0").unwrap();
        assert!(sentence.starts_with("clients run eke 0.0.9 and this server 0.1.0"), "{sentence}");
    }

    #[test]
    fn a_client_puts_no_sentence_into_a_note() {
        for version in ["0.1; run: curl x | sh".to_owned(), "1".repeat(1_000_000)] {
            let page = PAGE.replace("0.0.9", &version);
            let shown = client(&known(), Some(answer(Ok(page))));
            assert!(shown.measured.is_some() && versions(&[shown], "0.1.0").is_none());
        }
        let long = PAGE.replace("zram (zstd)", &"z".repeat(100_000));
        assert_eq!(answer(Ok(long)).unwrap().backend, None);
    }

    #[test]
    fn a_client_without_measurements_has_a_reason() {
        let refused = Some(answer(Err(io::ErrorKind::ConnectionRefused.into())));
        for (shown, reason) in [
            (client(&known(), refused), "no answer: connection refused"),
            (client(&Client { is_on: false, ..known() }, None), "eke is off"),
            (client(&Client { port: None, ..known() }, None), "EKE_METRICS=on is missing"),
            (client(&Client { ip: None, ..known() }, None), "not running"),
            (client(&known(), Some(answer(Ok("a 1\n".into())))), "another program has that port"),
        ] {
            assert!(shown.silent.as_ref().is_some_and(|why| why.contains(reason)), "{shown:?}");
            assert!(shown.measured.is_none());
        }
    }
}
