//! eke-bench
