//! In the small machine.
