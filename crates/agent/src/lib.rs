//! eke-agent
