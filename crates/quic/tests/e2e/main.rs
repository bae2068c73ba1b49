//! Real connections over loopback, through a proxy that spoils packets.
mod handshakes;
mod long;
mod proxy;
mod punctual;
mod stock;
mod transfers;
