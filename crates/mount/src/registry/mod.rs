//! Which mounts of `eke-cache` there are, and how they are reached.
