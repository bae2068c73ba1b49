//! Real connections over loopback, through a proxy that spoils packets.
mod long;
mod proxy;
mod transfers;
