//! In which order a disk serves: that of arrival, or its own.

use eke_model::units::{Bytes, Nanos};

use super::drive::{Answer, Drive};
use super::model::{Model, Request};
use super::profile::Profile;

/// A disk in time, which answers requests by their numbers.
#[derive(Debug)]
pub(super) enum Engine {
    /// In order of arrival: an answer is known at once.
    InOrder(Box<Model>),
    /// As the drive chooses.
    Drive(Box<Drive>),
}

impl Engine {
    /// An idle disk; `path` as of [`Model::new`], `cache` is the size of its write cache.
    pub(super) fn new(profile: &Profile, size: Bytes, path: Nanos, cache: Bytes) -> Self {
        if profile.orders {
            Self::Drive(Box::new(Drive::new(profile, size, path, cache)))
        } else {
            Self::InOrder(Box::new(Model::new(profile.clone(), size, path)))
        }
    }

    /// Takes a request that arrives at `now`; returns what can be answered by now.
    pub(super) fn arrive(&mut self, now: Nanos, id: u64, request: &Request) -> Vec<Answer> {
        match self {
            Self::InOrder(model) => vec![(id, model.serve(now, request))],
            Self::Drive(drive) => drive.arrive(now, id, request),
        }
    }

    /// Goes on until `now`; returns what can then be answered.
    pub(super) fn advance(&mut self, now: Nanos) -> Vec<Answer> {
        match self {
            Self::InOrder(_) => Vec::new(),
            Self::Drive(drive) => drive.advance(now),
        }
    }

    /// When [`Self::advance`] has something to do.
    pub(super) fn wakes(&self) -> Option<Nanos> {
        match self {
            Self::InOrder(_) => None,
            Self::Drive(drive) => drive.wakes(),
        }
    }
}
