//! What comes from a shared tier: messages of its process, values and reports of its engine; and the text that names it.

use eke_cache_mounts::engine_url;
use eke_cache_shared::frame::{Ask, OfferedBlock, Reply};
use eke_cache_shared::key::{FileVersion, Name, Origin};
use eke_cache_shared::seal::{KEY, Seal};
use eke_cache_shared::{info, record};

/// Messages are read as they were written, and no value is a block that is not whole.
pub fn shared_tier(data: &[u8]) {
    if let Some(ask) = Ask::decode(data) {
        assert_eq!(ask.encode(), data);
    }
    if let Some(offer) = OfferedBlock::decode(data) {
        assert_eq!(offer.encode(), data);
    }
    if let Some(reply) = Reply::decode(data) {
        for message in reply.encode() {
            assert!(Reply::decode(&message).is_some());
        }
    }
    let version = FileVersion { file: 7, size: 1 << 20, times_ns: [1, 2, 3] };
    let name = Name { origin: Origin::named("fuzzed"), version, block_size: 65_536, block: 3 };
    if let Some(block) = record::decode(&name, data) {
        assert_eq!(record::encode(&name, &block), data);
    }
    assert!(Seal::new(&[7; KEY]).open(&name, data, &mut Vec::new()).is_none());
    let text = String::from_utf8_lossy(data);
    let _ = info::parse(&text);
    if let Ok(url) = engine_url::parse(&text) {
        assert!(!url.hosts.is_empty());
    }
}
