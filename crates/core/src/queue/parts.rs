//! Laws and structures that several disciplines share.
//!
//! A discipline composes them: `fq_codel` = flow table + deficit round robin + CoDel's law.
pub mod cobalt_law;
pub mod codel_law;
pub mod congestion_policer;
pub mod drain_rate;
pub mod drr;
pub mod fattest;
pub mod flow_scheduler;
pub mod flow_table;
pub(super) mod limits;
pub mod pi2_law;
pub mod pie_law;
pub mod set_associative;
pub mod spin_rtt;
