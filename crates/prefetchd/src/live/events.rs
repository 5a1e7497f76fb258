//! What the process does with each event.

use super::background::is_in_background;
use super::launches::ColdLaunch;
use super::log_ins::{self, LOGIND_SESSIONS};
use super::notice::Notice;
use super::pending;
use super::process::Process;
use super::running::Executed;
use crate::trace::watch::TraceListener;
use crate::trace::{Observation, process};
use eke_model::units::Bytes;
use eke_prefetch_model::learn::{Exec, Now, ProgramState};
use eke_prefetch_model::program::{Program, ProgramId};
use eke_prefetch_model::user_event::{Event, UserEvent};

impl Process<'_> {
    pub(super) fn handle(&mut self, observation: Observation, now: Now) {
        match observation {
            Observation::Exec(exec, learned) => self.executed(&exec, learned.is_some(), now),
            Observation::Exit { pid, .. } => self.exited(pid, now),
            Observation::Lost => self.lost = true,
            Observation::Launch(finished) => self.learned(finished, now),
            Observation::Trouble(what) => self.notices.push(Notice::Trouble { what }),
        }
    }

    pub(super) fn exited(&mut self, pid: u32, now: Now) {
        let root = self.root;
        let heir = |cold: &ColdLaunch| process::heir(root, &cold.exe, cold.user, cold.executed);
        for cut_short in self.reads.launches.ended(pid, &heir) {
            self.probe.set_incomplete(cut_short);
        }
        let stop = self.running.ended(pid);
        stop.into_iter().for_each(|(user, event)| self.on_event(event, user, None, now));
    }

    fn executed(&mut self, exec: &Exec, is_recorded: bool, now: Now) {
        self.watch_launch(now);
        let program = exec.program.as_ref().map(Program::id);
        let known = exec.program.as_ref().filter(|program| self.library.state_of(program.id()).is_some());
        // A wrapper's start is no event: its program's is.
        let is_wrapper = known.is_some_and(|known| self.is_wrapper(known.id(), exec.uid));
        let (is_event, log_in) = (known.is_some() && !is_wrapper, self.log_in(exec));
        let executed = Executed { pid: exec.pid, uid: exec.uid, program, is_event, log_in };
        let events = self.running.executed(executed);
        let starts = is_wrapper || events.iter().any(|(_, event)| matches!(event, Event::Start(_)));
        events.into_iter().for_each(|(user, event)| self.on_event(event, user, Some(exec), now));
        if starts {
            self.reads.starting.begins(exec.pid, now.mono);
        }
        let Some(program) = known.filter(|_| starts) else { return };
        if !is_recorded {
            let is_minor = is_wrapper || self.library.seems_brief(program.id());
            self.library.count_launch(program, !is_minor, now);
        }
        // A part of a launch is part of that launch's file set.
        if exec.launch.is_none() {
            self.prefetch_launch(program, exec, is_recorded, now);
        }
    }

    /// Whether a person's log-in begins with this process: with a new audit session that logind lists. `None` if only processes show it: without logind, and
    /// at a session without an audit session.
    fn log_in(&mut self, exec: &Exec) -> Option<bool> {
        if !self.running.is_person(exec.uid) {
            return None;
        }
        let Some(session) = exec.session else {
            return is_in_background(self.root, exec).then_some(false);
        };
        if !self.sessions.is_new(exec.uid, session) {
            return Some(false);
        }
        if !self.root.exists(LOGIND_SESSIONS) {
            return None;
        }
        // Cron's jobs may have an audit session that logind does not list.
        let text = self.root.read(format!("{LOGIND_SESSIONS}/{session}")).unwrap_or_default();
        Some(log_ins::is_log_in(&text, exec.uid, || process::has_terminal(self.root, exec.pid)))
    }

    /// Whether a start, shown by an exec, or a stop shows a person's habit. Starts of a loop do not, nor those by cron or a service, and not those that nobody
    /// notices: nothing is read ahead for them, they are many, and counts of habits fade with each start.
    fn is_habit(&mut self, event: Event, account: u32, exec: Option<&Exec>, now: Now) -> bool {
        match event {
            Event::Session => true,
            Event::Start(program) => {
                let within = self.options.repeated_within;
                let is_persons =
                    || account == 0 || !exec.is_some_and(|exec| is_in_background(self.root, exec));
                !self.library.is_brief(program, now)
                    && is_persons()
                    && !self.last_starts.is_repeated(account, program, now.mono, within)
            }
            Event::Stop(program) => !self.library.seems_brief(program),
        }
    }

    pub(super) fn is_wrapper(&self, program: ProgramId, user: u32) -> bool {
        self.wrappers.is_wrapper(program, self.owners.account(user))
    }

    pub(super) fn on_event(&mut self, event: Event, user: u32, exec: Option<&Exec>, now: Now) {
        let account = self.running.account(user);
        // A log-in has several audit sessions: that of the user's systemd, and that of the desktop.
        if event == Event::Session && self.log_ins.has(account, now.mono) {
            return;
        }
        let user_event = UserEvent { at_s: self.local_s(now), user, event };
        let is_habit = self.is_habit(event, account, exec, now);
        let is_brief = matches!(event, Event::Start(id) | Event::Stop(id) if self.library.seems_brief(id));
        if is_habit {
            self.predictor.observe(&UserEvent { user: account, ..user_event });
        }
        self.library.add_event(user_event, !is_brief);
        match event {
            Event::Session => {
                self.reads.due.session(now.mono);
                self.log_ins.begins(account, now.mono);
            }
            Event::Start(program) => {
                self.state.launches += 1;
                if is_habit {
                    self.reads.due.start(now.mono);
                } else if !is_brief {
                    // It is not to be predicted while it runs.
                    self.predictor.found_running(program, account, user_event.at_s);
                }
                if !is_brief {
                    self.reads.outcomes.remove(&program);
                }
                self.used(program, now);
            }
            Event::Stop(_) => {}
        }
    }

    fn used(&mut self, program: ProgramId, now: Now) {
        self.reads.for_start.remove(&program);
        let read = self.reads.ahead.as_mut().and_then(|going| going.take_read(program));
        read.into_iter().for_each(|read| self.pending.read(read, now.mono));
        let was_fetched = self.pending.was_fetched(program);
        let Some((bytes, decision)) = self.pending.started(program) else { return };
        if was_fetched {
            self.add_read_for(program, bytes);
        }
        self.state.predicted += 1;
        self.state.used = self.state.used + Bytes(bytes);
        decision.into_iter().for_each(|decision| self.library.add_usage(decision, pending::used(bytes)));
    }
}

/// Exec events arrive before page tracers are attached, so that reading can begin meanwhile.
impl TraceListener for Process<'_> {
    fn state_of(&mut self, program: &Program, exec: &Exec) -> ProgramState {
        let (id, user) = (program.id(), exec.uid);
        if self.library.has_another_executable(id, exec.ino) {
            // An upgrade: this start is the first one of the new version.
            self.set_changed(id);
        }
        let known = self.library.state_of(id);
        let in_session = self.log_ins.has(self.running.account(user), self.clock.now().mono);
        let is_wrapper = self.is_wrapper(id, user);
        let runs = !is_wrapper && self.running.runs(user, id);
        let is_minor = is_wrapper || self.library.seems_brief(id);
        // Of a program that nothing is read ahead for, starts show no effect, and each would be recorded.
        let is_control = known.is_some() && !is_minor && self.effect.is_left_alone(id);
        let is_first_of_user = self.library.is_first_of(id, self.owners.account(user));
        let state = known.unwrap_or_default();
        ProgramState { runs, is_control, is_minor, is_first_of_user, in_session, ..state }
    }

    fn observe(&mut self, observation: Observation) {
        self.handle(observation, self.clock.now());
    }
}
