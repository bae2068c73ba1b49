//! The third world: the Linux kernel's own TCP and queue disciplines, and ours loaded into it.
