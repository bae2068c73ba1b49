//! Studies of papers: those that ship, small ones that run, and claims judged on figures made up by hand.
mod claims;
mod embedded;
mod linux;
mod pooled;
mod runs;
mod small;
mod support;
