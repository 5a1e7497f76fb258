//! Changes made below by others, told by the kernel (fanotify).
