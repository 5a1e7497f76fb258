//! Latencies by BPF: the programs of `bpf/latency.bpf.c`.
//!
//! Requests in flight are in an array, indexed by their tag: the JIT inlines its lookups. Only collisions go to a hash.
//!
//! - [`load`]: from the object to programs that the kernel accepted; [`decode`]: values of their maps; [`run_time`]: their CPU time
//! - [`groups`]: names of control groups

mod decode;
mod groups;
mod load;
pub mod run_time;

use std::collections::BTreeMap;

use eke_io::counters::{Counters, Latency, RequesterKey};
use eke_io::sensor::{Attribution, Refused, Sensor, devices, stat};
use eke_linux::Root;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object};

use load::Loaded;

/// BPF programs, attached.
#[derive(Debug)]
pub struct Bpf {
    root: Root,
    attribution: Attribution,
    coarse: Vec<String>,
    groups: BTreeMap<u64, String>,
    /// Before the object: they are dropped first.
    #[expect(dead_code, reason = "owned: its programs stay attached")]
    links: Vec<Link>,
    latencies: MapHandle,
    requesters: MapHandle,
    #[expect(dead_code, reason = "owned: its maps and programs stay")]
    object: Object,
}

impl Bpf {
    /// Loads the programs and attaches them.
    ///
    /// # Errors
    /// No BTF, too old a kernel, no permission, or the kernel rejected a program.
    pub fn start(root: &Root, attribution: Attribution) -> Result<Self, Refused> {
        let Loaded { object, links, coarse } = load::load(root, attribution, devices::by_number(root).len())?;
        let map = |name: &str| {
            let found = object.maps().find(|map| map.name() == name);
            let found =
                found.ok_or_else(|| Refused::new("find a BPF map", format!("no {name} in the object")))?;
            MapHandle::try_from(&found).map_err(|e| Refused::new(format!("take the BPF map {name}"), e))
        };
        let (latencies, requesters) = (map("latencies")?, map("requesters")?);
        let groups = BTreeMap::new();
        Ok(Self { root: root.clone(), attribution, coarse, groups, links, latencies, requesters, object })
    }

    /// The sum over all CPUs, and how many requests the kernel did not stamp.
    fn latency(&self, key: &[u8]) -> Option<(Latency, u64)> {
        let cpus = self.latencies.lookup_percpu(key, MapFlags::ANY).ok()??;
        let mut all = (Latency::default(), 0);
        for (latency, unstamped) in cpus.iter().filter_map(|cpu| decode::latency(cpu)) {
            all.0.merge(&latency);
            all.1 += unstamped;
        }
        Some(all)
    }

    fn add_requesters(&mut self, names: &BTreeMap<u32, String>, counters: &mut Counters) {
        if self.attribution == Attribution::None {
            return;
        }
        let keys: Vec<Vec<u8>> = self.requesters.keys().collect();
        if self.attribution == Attribution::Cgroup {
            self.find_groups(&keys);
        }
        for key in keys {
            let Some((id, device, operation)) = decode::requester_key(&key) else { continue };
            let Some(device) = names.get(&device).cloned() else { continue };
            let value = self.requesters.lookup(&key, MapFlags::ANY).ok().flatten();
            let Some(mut count) = value.as_deref().and_then(decode::requester) else { continue };
            if self.attribution == Attribution::Cgroup {
                count.name = self.group(id);
            }
            counters.requesters.insert(RequesterKey { device, id, operation }, count);
        }
    }

    /// Walks the groups again only for an unknown one. A removed group keeps its name.
    fn find_groups(&mut self, keys: &[Vec<u8>]) {
        let ids = keys.iter().filter_map(|key| decode::requester_key(key)).map(|(id, ..)| id);
        if ids.into_iter().any(|id| id != 0 && !self.groups.contains_key(&id)) {
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

impl Sensor for Bpf {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn read(&mut self) -> Result<Counters, Refused> {
        let names = devices::by_number(&self.root);
        let devices = stat::all(&self.root)?.into_iter().map(|(name, mut counters)| {
            counters.classes.clear();
            (name, counters)
        });
        let mut counters =
            Counters { devices: devices.collect(), missing: self.coarse.clone(), ..Counters::default() };
        for key in self.latencies.keys() {
            let Some((number, class)) = decode::key(&key) else { continue };
            let device = names.get(&number).and_then(|name| Some((name, counters.devices.get_mut(name)?)));
            let (Some((name, device)), Some((latency, unstamped))) = (device, self.latency(&key)) else {
                continue;
            };
            device.classes.insert(class, latency);
            if unstamped > 0 {
                let why = format!(
                    "{name} has no queue time: its queue/iostats is 0, so the kernel stamps no requests"
                );
                counters.missing.extend((!counters.missing.contains(&why)).then_some(why));
            }
        }
        self.add_requesters(&names, &mut counters);
        Ok(counters)
    }
}
