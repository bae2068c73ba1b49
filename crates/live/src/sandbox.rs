//! Namespaces, devices, addresses, children.
