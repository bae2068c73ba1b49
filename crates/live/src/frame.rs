//! What is read from packets and changed in them.
