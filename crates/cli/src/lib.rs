//! eke-cli
