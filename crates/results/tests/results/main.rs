//! Results as folders and as tables, and which files are read as scenarios and traces.
mod folders;
mod input;
mod rows;
