//! How much memory the store may have now.
