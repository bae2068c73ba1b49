//! A run's packets as other tools read them: [`pcapng`] for Wireshark, tshark, tcpdump and tcptrace, [`qlog`] for qvis.
//!
//! Everything is made from a [`PacketLog`](narrows_results::packets::PacketLog), which a world has recorded. The same log gives the
//! same bytes on every machine.
mod headers;
mod ip;
pub mod pcapng;
pub mod qlog;
