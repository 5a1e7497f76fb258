//! Passes requests to warm a path on to the worker, and its reports back. A request lasts as long as its client's connection.

use std::os::fd::AsFd;
use std::path::PathBuf;

use eke_cache_mounts::status::{Refusal, RefusalKind, Response, WarmProgress};

use super::Supervisor;
use super::channel::{ToWorker, send};
use super::clients::{Client, Pending};

impl Supervisor {
    /// A client requests it.
    pub(super) fn start_warming(&mut self, index: usize, path: PathBuf) {
        self.state.next_request += 1;
        let number = self.state.next_request;
        let sent = self.state.worker.as_ref().map(|w| send(w.channel.as_fd(), &ToWorker::Warm(number, path)));
        let Some(client) = self.state.clients.get_mut(index) else { return };
        match sent {
            Some(Ok(())) => client.pending = Pending::Warming(number),
            Some(Err(e)) => {
                client.answer(&failed(format!("the worker cannot be asked to read: {e}; try again")))
            }
            None => client.answer(&failed("a new worker is being started; try again".into())),
        }
    }

    /// The worker reports how far it is. A client that does not read the reports ends its request.
    pub(super) fn report_warming(&mut self, number: u64, progress: WarmProgress) {
        let Some(index) = self.who_warms(number) else { return };
        let told = self.state.clients.get_mut(index).map(|client| client.tell(&Response::Warming(progress)));
        if told == Some(false) {
            self.remove_client(index);
        }
    }

    /// It has ended.
    pub(super) fn end_warming(&mut self, number: u64, progress: WarmProgress) {
        let index = self.who_warms(number);
        if let Some(client) = index.and_then(|index| self.state.clients.get_mut(index)) {
            client.answer(&Response::Warmed(progress));
        }
    }

    /// The worker died, and with it what it had read.
    pub(super) fn fail_warming(&mut self, why: &str) {
        let warming = |client: &&mut Client| matches!(client.pending, Pending::Warming(_));
        let answer = failed(format!("{why}; what it had in memory is gone. Run the command again"));
        self.state.clients.iter_mut().filter(warming).for_each(|client| client.answer(&answer));
    }

    /// The client is gone, so its request is over.
    pub(super) fn remove_client(&mut self, index: usize) {
        let client = self.state.clients.remove(index);
        if let (Pending::Warming(number), Some(worker)) = (client.pending, &self.state.worker) {
            // A worker that cannot be told reads a little more than it must.
            let _ = send(worker.channel.as_fd(), &ToWorker::StopWarming(number));
        }
    }

    fn who_warms(&self, number: u64) -> Option<usize> {
        self.state.clients.iter().position(|client| client.pending == Pending::Warming(number))
    }
}

fn failed(what: String) -> Response {
    Response::Refused(Refusal { what, kind: RefusalKind::Failed })
}
