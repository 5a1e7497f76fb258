//! Does it pay? Running costs, and which files go straight through.
