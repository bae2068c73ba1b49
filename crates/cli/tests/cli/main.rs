//! The program as a user meets it: arguments in; text, files and exit codes out.
mod bad_input;
mod live;
mod reproduce;
mod results;
mod shell;
mod support;
