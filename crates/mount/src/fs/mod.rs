//! Each request of the kernel to calls on what is below.
