//! Scenario files: what is read, what is refused, and what comes back when one is written.
mod bad_input;
mod keys;
mod limits;
mod repeat;
mod round_trip;
mod settings;
mod shorthand;
mod tc;
