//! What readers get: tables, figures, folders, pages and differences, all from results made up by hand.
mod differences;
mod figures;
mod folders;
mod page;
mod routes;
mod sample;
mod tables;
