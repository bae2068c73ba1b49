//! The algorithms against what was worked out or recorded elsewhere: pseudo-code, Linux, and the laws of a link.
mod cobalt;
mod codel_ramp;
mod common;
mod fq_codel_choice;
mod gcc_filter;
mod link_laws;
mod linux_traces;
mod pie_update;
mod red_average;
