//! Tests of the parts of TCP; whole connections are tested in `tests/worlds`.
mod offload;
mod receiver;
mod scoreboard;
mod sender;
