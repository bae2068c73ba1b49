//! The parts of TCP one by one; connections over a world are tested in `tests/worlds`.
mod receiver;
mod scoreboard;
mod sender;
