//! eke-swap
