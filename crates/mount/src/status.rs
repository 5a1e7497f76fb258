//! What a mount is and does, as `eke cache status` shows it.
