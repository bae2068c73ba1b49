//! Real connections over loopback, through a proxy that spoils packets.
mod proxy;
mod transfers;
