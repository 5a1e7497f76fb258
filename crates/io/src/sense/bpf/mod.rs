//! Latencies by BPF: the programs of `bpf/latency.bpf.c`.
//!
//! - [`load`]: from the object to programs that the kernel took; [`decode`]: what their maps hold; [`cost`]: what they cost

pub mod cost;
mod decode;
mod load;

use std::collections::BTreeMap;

use eke_linux::Root;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object};

use super::groups;
use super::{By, Refused, Sense, devices, stat};
use crate::figures::{Latency, Reading, WhoKey};

/// BPF programs, attached.
#[derive(Debug)]
pub struct Bpf {
    root: Root,
    by: By,
    coarse: Vec<String>,
    groups: BTreeMap<u64, String>,
    /// Before the object: they are dropped first.
    #[expect(dead_code, reason = "held: its programs stay attached")]
    links: Vec<Link>,
    latencies: MapHandle,
    whose: MapHandle,
    #[expect(dead_code, reason = "held: its maps and programs stay")]
    object: Object,
}

impl Bpf {
    /// Loads the programs and attaches them.
    ///
    /// # Errors
    /// Why not: no BTF, too old a kernel, not permitted, or what the kernel said to which program.
    pub fn start(root: &Root, by: By) -> Result<Self, Refused> {
        let (object, links, coarse) = load::load(root, by, devices::by_number(root).len())?;
        let map = |name: &str| {
            let found = object.maps().find(|map| map.name() == name);
            let found =
                found.ok_or_else(|| Refused::new("find a BPF map", format!("no {name} in the object")))?;
            MapHandle::try_from(&found).map_err(|e| Refused::new(format!("take the BPF map {name}"), e))
        };
        let (latencies, whose) = (map("latencies")?, map("whose")?);
        Ok(Self { root: root.clone(), by, coarse, groups: BTreeMap::new(), links, latencies, whose, object })
    }

    fn latency(&self, key: &[u8]) -> Option<(Latency, u64)> {
        let cpus = self.latencies.lookup_percpu(key, MapFlags::ANY).ok()??;
        let mut all = (Latency::default(), 0);
        for (latency, unstamped) in cpus.iter().filter_map(|cpu| decode::latency(cpu)) {
            all.0.merge(&latency);
            all.1 += unstamped;
        }
        Some(all)
    }

    fn add_whose(&mut self, names: &BTreeMap<u32, String>, reading: &mut Reading) {
        if self.by == By::Nobody {
            return;
        }
        let keys: Vec<Vec<u8>> = self.whose.keys().collect();
        if self.by == By::Cgroup {
            self.find_groups(&keys);
        }
        for key in keys {
            let Some((id, device, operation)) = decode::who_key(&key) else { continue };
            let Some(device) = names.get(&device).cloned() else { continue };
            let value = self.whose.lookup(&key, MapFlags::ANY).ok().flatten();
            let Some(mut count) = value.as_deref().and_then(decode::who) else { continue };
            if self.by == By::Cgroup {
                count.name = self.group(id);
            }
            reading.whose.insert(WhoKey { device, id, operation }, count);
        }
    }

    /// Groups are looked for again only when there is one that is not known.
    fn find_groups(&mut self, keys: &[Vec<u8>]) {
        let ids = keys.iter().filter_map(|key| decode::who_key(key)).map(|(id, ..)| id);
        if ids.into_iter().any(|id| id != 0 && !self.groups.contains_key(&id)) {
            // a group that is gone keeps its name
            self.groups.extend(groups::by_number(&self.root));
        }
    }

    fn group(&self, id: u64) -> String {
        match (id, self.groups.get(&id)) {
            (0, _) => "no group".to_owned(),
            (_, Some(name)) => name.clone(),
            (_, None) => format!("group {id}, gone"),
        }
    }
}

impl Sense for Bpf {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn read(&mut self) -> Result<Reading, Refused> {
        let names = devices::by_number(&self.root);
        let devices = stat::all(&self.root)?.into_iter().map(|(name, mut counted)| {
            counted.classes.clear();
            (name, counted)
        });
        let mut reading =
            Reading { devices: devices.collect(), missing: self.coarse.clone(), ..Reading::default() };
        for key in self.latencies.keys() {
            let Some((number, class)) = decode::key(&key) else { continue };
            let device = names.get(&number).and_then(|name| Some((name, reading.devices.get_mut(name)?)));
            let (Some((name, counted)), Some((latency, unstamped))) = (device, self.latency(&key)) else {
                continue;
            };
            counted.classes.insert(class, latency);
            if unstamped > 0 {
                let why = format!(
                    "{name} has no queue wait: its queue/iostats is 0, so requests have no time of making"
                );
                reading.missing.extend((!reading.missing.contains(&why)).then_some(why));
            }
        }
        self.add_whose(&names, &mut reading);
        Ok(reading)
    }
}
