//! Messages between a worker and the engine's process: one each, over pairs of SOCK_SEQPACKET sockets, so that neither end's death cuts one.
//! Pure. All numbers are little-endian. Both ends bound what they accept.

use crate::key::{BlockKey, GROUP, Group};
use crate::record::LONGEST;

/// Both ends must be of one version: frames have none. After an upgrade a worker goes on, and another program is executed beside it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The most bytes of a message. A socket's default buffer has room for it.
pub const MESSAGE: usize = 128 << 10;

const ASK: u8 = 1;
const OFFER: u8 = 2;
const ANSWER: u8 = 3;
const FAILED: u8 = 4;
const ENGINE: u8 = 5;

/// Length of a block that the engine does not have.
const ABSENT: u32 = u32::MAX;

/// The most bytes of a sentence.
const SENTENCE: usize = 300;

/// To the engine's process: what is needed, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Its number, repeated in the answers.
    pub id: u64,
    /// Nobody waits any more after this time of `CLOCK_MONOTONIC`, in µs.
    pub until_us: u64,
    /// The blocks' group.
    pub group: Group,
    /// Which of the group's blocks.
    pub indices: Vec<u8>,
}

/// To the engine's process: a block for the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfferedBlock<'a> {
    /// Its key.
    pub key: BlockKey,
    /// The value.
    pub value: &'a [u8],
}

/// A block in an answer.
pub type Answered<'a> = (u8, Option<&'a [u8]>);

/// How the engine is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineState {
    /// Connections that work.
    pub connected: u32,
    /// Memory that it uses, and its limit (0: none), in bytes, of all nodes together.
    pub memory: u64,
    /// See `memory`.
    pub limit: u64,
    /// Keys that it evicted.
    pub evicted: u64,
    /// Blocks that it did not store.
    pub refused: u64,
    /// Some node has no limit of memory.
    pub is_unlimited: bool,
    /// Some node evicts nothing when it is full.
    pub keeps_all: bool,
    /// What fails now, as a sentence; empty if nothing.
    pub failed: String,
}

/// From the engine's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<'a> {
    /// Some of the blocks of an ask.
    Blocks(u64, Vec<Answered<'a>>),
    /// No more blocks of this ask come.
    Failed(u64),
    /// How the engine is.
    Engine(EngineState),
}

/// Takes numbers and bytes from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn small(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn large(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn group(&mut self) -> Option<Group> {
        Some(Group(self.take(16)?.try_into().ok()?))
    }
}

impl Ask {
    /// As a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![ASK];
        out.extend(self.id.to_le_bytes());
        out.extend(self.until_us.to_le_bytes());
        out.extend(self.group.0);
        out.extend(&self.indices);
        out
    }

    /// From a message. `None`: it is none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let (ASK, id, until_us) = (reader.byte()?, reader.large()?, reader.large()?) else { return None };
        let (group, indices) = (reader.group()?, reader.0);
        let is_bounded = !indices.is_empty() && indices.len() <= GROUP as usize;
        let are_known = indices.iter().all(|index| u64::from(*index) < GROUP);
        (is_bounded && are_known).then(|| Self { id, until_us, group, indices: indices.to_vec() })
    }
}

impl<'a> OfferedBlock<'a> {
    /// As a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(18 + self.value.len());
        out.push(OFFER);
        out.extend(self.key.group.0);
        out.push(self.key.index);
        out.extend(self.value);
        out
    }

    /// From a message. `None`: it is none.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let (OFFER, group, index) = (reader.byte()?, reader.group()?, reader.byte()?) else { return None };
        let is_bounded = u64::from(index) < GROUP && reader.0.len() <= LONGEST;
        is_bounded.then_some(Self { key: BlockKey { group, index }, value: reader.0 })
    }
}

impl<'a> Reply<'a> {
    /// As messages: blocks that do not fit into one are divided. A value that is too long for any block is absent.
    pub fn encode(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Blocks(id, blocks) => encode_blocks(*id, blocks),
            Self::Failed(id) => vec![[&[FAILED][..], &id.to_le_bytes()].concat()],
            Self::Engine(engine) => vec![encode_engine(engine)],
        }
    }

    /// From a message. `None`: it is none.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        match reader.byte()? {
            ANSWER => {
                let (id, mut blocks) = (reader.large()?, Vec::new());
                while !reader.0.is_empty() && blocks.len() < GROUP as usize {
                    let (index, len) = (reader.byte()?, reader.small()?);
                    let value = if len == ABSENT { None } else { Some(reader.take(len as usize)?) };
                    blocks.push((index, value));
                }
                reader.0.is_empty().then_some(Self::Blocks(id, blocks))
            }
            FAILED => Some(Self::Failed(reader.large()?)).filter(|_| reader.0.is_empty()),
            ENGINE => decode_engine(reader).map(Self::Engine),
            _ => None,
        }
    }
}

fn encode_blocks(id: u64, blocks: &[Answered<'_>]) -> Vec<Vec<u8>> {
    let begin = || [&[ANSWER][..], &id.to_le_bytes()].concat();
    let (mut messages, mut message) = (Vec::new(), begin());
    for (index, value) in blocks {
        let value = value.filter(|value| value.len() <= LONGEST);
        if message.len() + 5 + value.map_or(0, <[u8]>::len) > MESSAGE {
            messages.push(std::mem::replace(&mut message, begin()));
        }
        message.push(*index);
        message.extend(value.map_or(ABSENT, |value| value.len() as u32).to_le_bytes());
        message.extend(value.unwrap_or_default());
    }
    messages.push(message);
    messages
}

fn encode_engine(engine: &EngineState) -> Vec<u8> {
    let mut out = vec![ENGINE];
    out.extend(engine.connected.to_le_bytes());
    let numbers = [engine.memory, engine.limit, engine.evicted, engine.refused];
    numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
    out.extend([u8::from(engine.is_unlimited), u8::from(engine.keeps_all)]);
    out.extend(engine.failed.chars().take(SENTENCE / 4).collect::<String>().as_bytes());
    out
}

fn decode_engine(mut reader: Reader<'_>) -> Option<EngineState> {
    let connected = reader.small()?;
    let (memory, limit, evicted, refused) =
        (reader.large()?, reader.large()?, reader.large()?, reader.large()?);
    let (is_unlimited, keeps_all) = (reader.byte()? != 0, reader.byte()? != 0);
    let failed = std::str::from_utf8(reader.0).ok().filter(|text| text.len() <= SENTENCE)?;
    let failed = failed.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    Some(EngineState { connected, memory, limit, evicted, refused, is_unlimited, keeps_all, failed })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_ask_is_read_as_it_was_written(id: u64, until_us: u64, group: [u8; 16], indices in prop::collection::vec(0u8..32, 1..33)) {
            let ask = Ask { id, until_us, group: Group(group), indices };
            prop_assert_eq!(Ask::decode(&ask.encode()), Some(ask));
        }

        #[test]
        fn answers_are_read_as_they_were_written(id: u64, values in prop::collection::vec(prop::option::of(0usize..70_000), 1..33)) {
            let bytes = vec![7; 70_000];
            let blocks: Vec<Answered<'_>> =
                values.iter().zip(0..).map(|(len, index)| (index, len.map(|len| &bytes[..len]))).collect();
            let messages = Reply::Blocks(id, blocks.clone()).encode();
            let mut read = Vec::new();
            for message in &messages {
                prop_assert!(message.len() <= MESSAGE);
                let Some(Reply::Blocks(of, some)) = Reply::decode(message) else { panic!("no answer") };
                prop_assert_eq!(of, id);
                read.extend(some);
            }
            let expected: Vec<_> = blocks.iter().map(|(i, v)| (*i, v.filter(|v| v.len() <= LONGEST))).collect();
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn foreign_bytes_are_no_message_or_a_bounded_one(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(ask) = Ask::decode(&bytes) {
                prop_assert_eq!(ask.encode(), bytes.clone());
            }
            if let Some(offer) = OfferedBlock::decode(&bytes) {
                prop_assert_eq!(offer.encode(), bytes.clone());
            }
            let _ = Reply::decode(&bytes);
        }
    }

    #[test]
    fn the_engines_state_is_read_as_it_was_written_without_what_a_terminal_obeys() {
        let engine = EngineState {
            connected: 3,
            memory: 1,
            limit: 2,
            evicted: 3,
            refused: 4,
            is_unlimited: true,
            keeps_all: false,
            failed: "no route".into(),
        };
        let read = |engine: &EngineState| {
            let messages = Reply::Engine(engine.clone()).encode();
            match Reply::decode(&messages[0]) {
                Some(Reply::Engine(read)) => read,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(read(&engine), engine);
        assert_eq!(read(&EngineState { failed: "a\u{1b}b".into(), ..engine }).failed, "a?b");
        assert_eq!(Reply::decode(&Reply::Failed(9).encode()[0]), Some(Reply::Failed(9)));
    }
}
