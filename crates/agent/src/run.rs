//! The loop: wait, serve, tick.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use eke_linux::Root;
use eke_linux::settings::SettingsError;
use eke_model::config::Settings;
use eke_model::snapshot::{Request, Response};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::child_service::ChildServices;
use crate::client::{Client, Incoming};
use crate::clients::{Clients, Entry};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::limits::Users;
use crate::pressure::{self, Trigger};
use crate::request;
use crate::socket::Listeners;
use crate::watch::{Watch, event_line, line};

/// Why the agent exited. Applied changes stay in place either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// `shutdown` became readable: a signal.
    BySignal,
    /// Root requested it on the socket.
    ByRequest,
}

/// Loads the settings, at the start and whenever root requests a reload.
pub type LoadSettings<'a> = &'a dyn Fn() -> Result<Settings, SettingsError>;

/// Runs the agent on `root`, with `children` while a plan is applied, until `shutdown` becomes readable or root stops
/// it.
///
/// # Errors
/// Settings that cannot be loaded at the start, and a `poll(2)` that fails.
pub fn run(
    root: &Root,
    listeners: &Listeners,
    clock: &dyn Clock,
    shutdown: BorrowedFd<'_>,
    load: LoadSettings<'_>,
    children: impl Into<ChildServices>,
) -> Result<Ended> {
    let mut agent = Agent {
        watch: Watch::new(root, clock, load()?, children),
        clients: Clients::new(listeners.refuses_descriptors),
        users: Users::default(),
        trigger: trigger(root),
        listeners,
        clock,
        shutdown,
        load,
        next_tick_ms: clock.monotonic_ms(),
        next_guard_ms: None,
    };
    loop {
        agent.tick_if_due();
        agent.announce();
        let ready = agent.wait()?;
        if ready.shutdown {
            agent.watch.let_go();
            return Ok(Ended::BySignal);
        }
        if agent.serve(&ready) {
            agent.watch.let_go();
            return Ok(Ended::ByRequest);
        }
    }
}

fn trigger(root: &Root) -> Option<Trigger> {
    match pressure::watch(root) {
        Ok(trigger) => Some(trigger),
        Err(why) => {
            tracing::warn!("Memory pressure does not wake the agent before its tick: {why}.");
            None
        }
    }
}

struct Agent<'a> {
    watch: Watch<'a>,
    clients: Clients,
    users: Users,
    trigger: Option<Trigger>,
    listeners: &'a Listeners,
    clock: &'a dyn Clock,
    shutdown: BorrowedFd<'a>,
    load: LoadSettings<'a>,
    next_tick_ms: u64,
    next_guard_ms: Option<u64>,
}

/// What `poll(2)` reported.
struct Ready {
    shutdown: bool,
    everybody: bool,
    root: bool,
    pressure: PollFlags,
    clients: Vec<PollFlags>,
}

impl Agent<'_> {
    fn tick_if_due(&mut self) {
        if self.clock.monotonic_ms() >= self.next_tick_ms {
            self.watch.tick();
            self.next_tick_ms = self.clock.monotonic_ms() + self.watch.tick_ms();
        } else if self.next_guard_ms.is_some_and(|due| self.clock.monotonic_ms() >= due) {
            self.watch.guard();
        } else {
            return;
        }
        self.next_guard_ms = self.watch.next_guard_ms();
    }

    /// Sends important events to the clients that watch.
    fn announce(&mut self) {
        let now_ms = self.clock.monotonic_ms();
        for event in self.watch.news() {
            self.clients.retain(|_, client| {
                !client.watches() || client.notify(&event_line(&event, client.uid()), now_ms)
            });
        }
    }

    fn wait(&self) -> Result<Ready> {
        let now_ms = self.clock.monotonic_ms();
        let due = [Some(self.next_tick_ms), self.next_guard_ms, self.clients.due_ms(now_ms)];
        let due_ms = due.into_iter().flatten().min().unwrap_or(self.next_tick_ms);
        let listen =
            |entry| if self.clients.are_welcome(entry, now_ms) { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.shutdown, PollFlags::IN),
            PollFd::new(&self.listeners.everybody, listen(Entry::Everybody)),
            PollFd::new(&self.listeners.root, listen(Entry::Root)),
        ];
        fds.extend(self.clients.iter().map(|c| PollFd::new(c, c.waits_for(now_ms))));
        fds.extend(self.trigger.as_ref().map(|t| PollFd::new(t, PollFlags::PRI)));
        match poll(&mut fds, Some(&timespec(due_ms.saturating_sub(now_ms)))) {
            Ok(_) | Err(Errno::INTR) => Ok(self.ready(&fds)),
            Err(e) => Err(Error::Wait(e.into())),
        }
    }

    fn ready(&self, fds: &[PollFd<'_>]) -> Ready {
        let found: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        let clients = self.clients.iter().count();
        Ready {
            shutdown: !found[0].is_empty(),
            everybody: !found[1].is_empty(),
            root: !found[2].is_empty(),
            pressure: found.get(3 + clients).copied().unwrap_or(PollFlags::empty()),
            clients: found[3..3 + clients].to_vec(),
        }
    }

    /// Serves all ready clients. `true`: root requested a stop and was answered.
    fn serve(&mut self, ready: &Ready) -> bool {
        self.heed(ready.pressure);
        let mut clients = std::mem::take(&mut self.clients);
        let mut stop = false;
        clients.retain(|number, client| {
            let now_ms = self.clock.monotonic_ms();
            let found = ready.clients.get(number).copied().unwrap_or(PollFlags::empty());
            let stays = if client.rests(now_ms) {
                // poll(2) reports only the hang-up of a client that is not polled for input.
                !found.intersects(PollFlags::HUP | PollFlags::ERR)
            } else {
                (found.is_empty() && !client.has_line()) || self.exchange(client, now_ms, &mut stop)
            };
            stays && !client.is_overdue(now_ms)
        });
        let now_ms = self.clock.monotonic_ms();
        if ready.root {
            clients.accept(&self.listeners.root, Entry::Root, now_ms);
        }
        if ready.everybody {
            clients.accept(&self.listeners.everybody, Entry::Everybody, now_ms);
        }
        clients.pass_on(now_ms);
        self.clients = clients;
        stop
    }

    /// Memory pressure brings the next tick forward; a failed trigger is dropped.
    fn heed(&mut self, found: PollFlags) {
        if found.contains(PollFlags::ERR) {
            tracing::warn!(
                "The kernel ended the trigger for memory pressure; only the timer wakes the agent now."
            );
            self.trigger = None;
        } else if found.contains(PollFlags::PRI) {
            self.watch.wake_guard();
            self.next_tick_ms = self.clock.monotonic_ms();
        }
    }

    /// Advances one client's exchange. `false`: the connection is closed.
    fn exchange(&mut self, client: &mut Client, now_ms: u64, stop: &mut bool) -> bool {
        if client.waits_for(now_ms) == PollFlags::IN {
            if let Some(until_ms) = self.too_early(client, now_ms) {
                client.rest_until(until_ms);
                return true;
            }
            match client.read() {
                Incoming::Line(request) => self.reply(client, &request, stop),
                Incoming::TooLong => client.answer(&line(&request::too_long()), true),
                Incoming::Unfinished => {
                    client.rest_after_a_piece(now_ms);
                    return true;
                }
                Incoming::Gone => return false,
            }
            if !client.is_root() {
                self.users.take(client.uid(), now_ms);
            }
        }
        client.flush(now_ms)
    }

    /// When a user with too many requests may be answered.
    fn too_early(&self, client: &Client, now_ms: u64) -> Option<u64> {
        let next_ms = self.users.next_ms(client.uid(), now_ms);
        (!client.is_root() && next_ms > now_ms).then_some(next_ms)
    }

    fn reply(&mut self, client: &mut Client, request: &[u8], stop: &mut bool) {
        match request::decode(request, client.is_root()) {
            Ok(Request::Status) => client.answer(self.watch.status(client.uid()), false),
            Ok(Request::Watch) => {
                client.watch();
                let kept = self.watch.important(client.uid()).concat();
                client.answer(&[line(&Response::Done), kept].concat(), false);
            }
            Ok(Request::Reload) => client.answer(&line(&self.reload()), false),
            Ok(Request::Stop) => {
                *stop = true;
                client.answer(&line(&Response::Done), true);
            }
            Err(refusal) => client.answer(&line(&refusal), false),
        }
    }

    fn reload(&mut self) -> Response {
        match (self.load)() {
            Ok(settings) => {
                self.watch.reload(settings);
                self.next_tick_ms = self.clock.monotonic_ms();
                Response::Done
            }
            Err(e) => {
                Response::Refused { reason: format!("{e}; the settings are unchanged"), needs_root: false }
            }
        }
    }
}

/// A time too large for a `timespec` is longer than any machine runs; such a wait ends at once instead.
fn timespec(ms: u64) -> Timespec {
    Duration::from_millis(ms).try_into().unwrap_or_default()
}
