//! What this server's files say: LTSP's settings, and who is there.

use std::time::{SystemTime, UNIX_EPOCH};

use eke_apply::boot::ltsp::{self, CONF, Image};
use eke_linux::Root;
use eke_ltsp_conf::leases::{Lease, leases};
use eke_ltsp_conf::neighbours::{Neighbour, neighbours};
use eke_ltsp_conf::{Entry, entries, options, sections};
use eke_model::text::one_line;
use eke_present::exit::{Failure, Outcome, Status};

/// dnsmasq's own default, and Debian's.
const LEASES: [&str; 2] = ["var/lib/misc/dnsmasq.leases", "var/lib/dnsmasq/dnsmasq.leases"];
const ARP: &str = "proc/net/arp";
/// The command is that of ltsp.conf(5).
const MISSING: &str = "/etc/ltsp/ltsp.conf does not exist: `install -m 0660 -g sudo /usr/share/ltsp/common/ltsp/ltsp.conf /etc/ltsp/ltsp.conf` makes it, with the section [clients]";
/// LTSP's default.
const TFTP_DIR: &str = "/srv/tftp";

/// `ltsp.conf`.
pub struct Conf {
    /// Its lines; empty if there are none that eke can use.
    pub entries: Vec<Entry>,
    /// What is wrong in it, one sentence each, with file and line.
    pub notes: Vec<String>,
    /// Some section has `EKE=auto`.
    pub is_switched_on: bool,
    /// The file exists, and all its lines could be parsed.
    is_whole: bool,
}

/// Reads `ltsp.conf`. A missing file and a line that eke cannot parse are notes, and clients may still have a lease. Comments and values may
/// have bytes that are not UTF-8.
///
/// # Errors
/// The file cannot be read.
pub fn conf(root: &Root) -> Outcome<Conf> {
    let text = root.read_if_exists(CONF).map_err(unreadable)?;
    let read = text.ok_or_else(|| MISSING.to_owned()).and_then(|text| parsed(&text));
    let is_whole = read.is_ok();
    let (entries, notes) = read.unwrap_or_else(|why| (Vec::new(), vec![why]));
    let is_switched_on = options::is_on_anywhere(&entries);
    Ok(Conf { entries, notes, is_switched_on, is_whole })
}

/// As [`conf`], for what would take a file without options for a lab without clients, as one that an editor is just writing. Notes go to standard error.
///
/// # Errors
/// The file cannot be read, does not exist, or has a line that eke cannot parse.
pub fn whole_conf(root: &Root) -> Outcome<Conf> {
    let conf = conf(root)?;
    if !conf.is_whole {
        return Err(Failure::new(Status::Failed, conf.notes.join("; ")));
    }
    conf.notes.iter().for_each(|note| eke_present::warn!("note: {}", one_line(note)));
    Ok(conf)
}

/// The lines, and what is wrong with them.
///
/// # Errors
/// The line that eke cannot parse.
fn parsed(text: &str) -> Result<(Vec<Entry>, Vec<String>), String> {
    let entries = entries(text).map_err(|e| {
        format!("/{CONF}:{}: {}; until eke can read that line, it knows no options", e.line, e.why)
    })?;
    let wrong = options::wrong(&entries).into_iter();
    let notes = wrong.map(|w| format!("/{CONF}:{}: {}", w.line, w.why)).collect();
    Ok((entries, notes))
}

/// LTSP's own way to make `ltsp.conf` gives it mode 0660, since it may have passwords.
fn unreadable(error: eke_linux::Error) -> Failure {
    let is_permission = error.is_permission();
    let failure = Failure::from(error);
    if is_permission {
        failure.hint("ltsp.conf is readable by root alone here: sudo eke ltsp status")
    } else {
        failure
    }
}

impl Conf {
    /// The directory that TFTP serves.
    pub fn tftp_dir(&self) -> String {
        options::value(&sections::of_server(&self.entries), "TFTP_DIR").unwrap_or_else(|| TFTP_DIR.to_owned())
    }

    /// What `ltsp.img` has.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn image(&self, root: &Root) -> Outcome<Image> {
        Ok(ltsp::image(root, &self.tftp_dir())?)
    }
}

/// The leases that hold now.
pub fn current_leases(root: &Root) -> Vec<Lease> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let text = LEASES.iter().find_map(|path| root.read(path).ok());
    leases(&text.unwrap_or_default(), now_s)
}

/// Machines that this server has exchanged packets with.
pub fn current_neighbours(root: &Root) -> Vec<Neighbour> {
    neighbours(&root.read(ARP).unwrap_or_default())
}
