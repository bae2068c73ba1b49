//! The program from outside: arguments in; text, files and exit codes out.
mod advise;
mod bad_input;
mod captures;
mod check;
mod diff;
#[cfg(unix)]
mod docs;
mod examples;
mod hostile;
#[cfg(unix)]
mod interrupt;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod live;
mod manual;
#[cfg(target_os = "linux")]
mod measure;
mod new;
#[cfg(unix)]
mod outputs;
mod play;
mod plot;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(unix)]
mod publish;
mod reproduce;
#[cfg(target_os = "linux")]
mod reproduce_kernel;
mod results;
#[cfg(target_os = "linux")]
mod shell;
mod support;
mod sweep;
mod traces;
mod values;
mod words;
