//! `status` and `targets`: who the clients are, and what they measure.

use std::path::Path;
use std::time::Duration;

use eke_apply::boot::ltsp;
use eke_linux::Root;
use eke_ltsp::clients::{self, Client, Known};
use eke_ltsp::status::{self, ClientStatus, Measured, is_eke};
use eke_ltsp::{scrape, targets};
use eke_model::text::one_line;
use eke_model::units::Bytes;
use eke_present::document::print;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::table::Table;
use eke_present::{output, put, putln};

use super::server::{Conf, conf, current_leases, current_neighbours, whole_conf};

/// A client on a busy network answers within a second; one that is switched off never.
const DEADLINE: Duration = Duration::from_secs(2);
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Of neighbours only those that serve eke's metrics.
fn all(root: &Root, conf: &Conf, words: &[String]) -> Outcome<Vec<Client>> {
    let (leases, neighbours) = (current_leases(root), current_neighbours(root));
    let known = Known { entries: &conf.entries, leases: &leases, neighbours: &neighbours, named: &[] };
    let without = clients::clients(&known);
    let named = clients::named(words, &without).map_err(|word| {
        Failure::new(Status::Usage, format!("\"{}\" is neither an IP address nor the name of a client that is known here", one_line(word)))
            .hint("`eke ltsp status` without a name lists those with a lease of dnsmasq or a section [HARDWARE ADDRESS] in ltsp.conf")
    })?;
    Ok(without_wrong_guesses(clients::clients(&Known { named: &named, ..known })))
}

fn without_wrong_guesses(clients: Vec<Client>) -> Vec<Client> {
    let addresses: Vec<_> = clients.iter().map(|c| c.address().filter(|_| c.is_guess)).collect();
    let answers = scrape::all(&addresses, DEADLINE, &|page| page.is_ok_and(|page| is_eke(&page)));
    let pairs = clients.into_iter().zip(answers);
    pairs.filter_map(|(c, is_eke)| (!c.is_guess || is_eke == Some(true)).then_some(c)).collect()
}

/// The table of clients.
pub fn status(root: &Root, json: bool, words: &[String]) -> Outcome {
    let conf = conf(root)?;
    let clients = all(root, &conf, words)?;
    let addresses: Vec<_> = clients.iter().map(Client::address).collect();
    let answers = scrape::all(&addresses, DEADLINE, &status::answer);
    let rows: Vec<ClientStatus> =
        clients.iter().zip(answers).map(|(client, answer)| status::client(client, answer)).collect();
    let image = conf.image(root)?;
    let is_installed = root.exists(ltsp::SCRIPT);
    let mut notes = conf.notes.clone();
    notes.extend(stale(root, &conf, is_installed, &image));
    notes.extend(status::versions(&rows, VERSION));
    let document =
        status::Status { is_installed, is_in_boot_image: image.is_script_current, notes, clients: rows };
    print(json, &document, show)?;
    Ok(Status::Done)
}

fn stale(root: &Root, conf: &Conf, is_installed: bool, image: &ltsp::Image) -> Option<String> {
    let path = &image.path;
    match (is_installed, image.bytes) {
        (false, _) => Some(match ltsp::changes(root, &conf.tftp_dir()) {
            Ok(_) => "eke is not in the clients' boot: `eke ltsp install` puts it there".to_owned(),
            Err(why) => why.to_string(),
        }),
        (_, None) => Some(format!("/{path} does not exist: run `ltsp initrd`")),
        _ if !image.is_script_current => {
            Some(format!("/{path} lacks this eke's script: run `eke ltsp install`, then restart the clients"))
        }
        _ if !image.is_conf_current => Some(format!(
            "ltsp.conf was changed since /{path} was made: run `ltsp initrd`, then restart the clients"
        )),
        _ => None,
    }
}

fn show(document: &status::Status) {
    document.notes.iter().for_each(|note| putln!("note: {}", one_line(note)));
    if document.clients.is_empty() {
        putln!(
            "No client is known: none has a lease of dnsmasq or a section [HARDWARE ADDRESS] in ltsp.conf, and no neighbour serves metrics (EKE_METRICS=on)."
        );
        putln!("With another DHCP server give addresses: eke ltsp status 192.168.67.21");
        return;
    }
    let mut table = Table::new(&[
        "client",
        "hardware address",
        "memory",
        "available",
        "short",
        "gained",
        "cipher",
        "MB/s",
        "seen",
        "eke",
    ])
    .ending_in_words();
    document.clients.iter().for_each(|client| table.row(cells(client)));
    put!("{table}");
}

fn cells(client: &ClientStatus) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let measured = client.measured.as_ref();
    let bytes =
        |get: fn(&Measured) -> Option<u64>| or_dash(measured.and_then(get).map(|n| Bytes(n).to_string()));
    let short = measured.map(|m| if m.short.is_empty() { "nothing".to_owned() } else { m.short.join(", ") });
    let cipher = client.cipher.as_deref().and_then(|c| c.split('@').next()).map(str::to_owned);
    vec![
        client.name.clone(),
        or_dash(client.mac.clone()),
        bytes(|m| m.ram_bytes),
        bytes(|m| m.available_bytes),
        or_dash(short),
        bytes(|m| m.saved_bytes),
        or_dash(cipher),
        or_dash(client.mb_per_s.map(|rate| rate.to_string())),
        or_dash(measured.map(|_| "now".to_owned())),
        client.silent.clone().or_else(|| measured.map(work)).unwrap_or_default(),
    ]
}

/// What eke does on a client.
fn work(measured: &Measured) -> String {
    let swap = match (&measured.backend, measured.is_applied) {
        (Some(backend), true) => backend.clone(),
        (Some(backend), false) => format!("no plan applied; {backend} is not eke's"),
        (None, _) => "no compressed swap".to_owned(),
    };
    let prefetch = if measured.is_prefetching { ", reads ahead" } else { "" };
    let kills = match measured.oom_kills {
        0 => String::new(),
        n => format!(", {n} killed for lack of memory"),
    };
    format!("{swap}{prefetch}{kills}")
}

/// The clients for Prometheus. A file stays as it is where `ltsp.conf` cannot be read: without its targets no alert would tell of it.
pub fn targets(root: &Root, to: Option<&Path>, words: &[String]) -> Outcome {
    let conf = whole_conf(root)?;
    let targets = targets::targets(&all(root, &conf, words)?);
    let text = format!("{}\n", serde_json::to_string_pretty(&targets)?);
    match to {
        Some(file) => output::replace_for_all(file, &text)?,
        None => put!("{text}"),
    }
    Ok(Status::Done)
}

/// Each client's address, one a line.
pub fn addresses(root: &Root) -> Outcome {
    let conf = whole_conf(root)?;
    all(root, &conf, &[])?.iter().filter_map(|client| client.ip).for_each(|ip| putln!("{ip}"));
    Ok(Status::Done)
}
