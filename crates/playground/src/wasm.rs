//! The engine as WebAssembly exports it: a request is written into memory that [`room`] gives, and [`answer`] says how long the reply
//! is, which stands at [`reply`].
#![allow(unsafe_code, unreachable_pub)]
use crate::{Engine, Limits};
use std::cell::RefCell;

struct Worker {
    engine: Engine,
    request: Vec<u8>,
    reply: String,
}

thread_local! {
    static WORKER: RefCell<Worker> = const {
        RefCell::new(Worker { engine: Engine::new(Limits::TAB), request: Vec::new(), reply: String::new() })
    };
}

/// Memory for a request of this length, bytes.
#[unsafe(no_mangle)]
pub extern "C" fn room(len: usize) -> *mut u8 {
    WORKER.with_borrow_mut(|worker| {
        worker.request.clear();
        worker.request.resize(len, 0);
        worker.request.as_mut_ptr()
    })
}

/// Answers the request, and returns the reply's length, bytes.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    WORKER.with_borrow_mut(|worker| {
        let request = String::from_utf8_lossy(&worker.request);
        worker.reply = worker.engine.answer(&request);
        worker.reply.len()
    })
}

/// Where the reply stands.
#[unsafe(no_mangle)]
pub extern "C" fn reply() -> *const u8 {
    WORKER.with_borrow(|worker| worker.reply.as_ptr())
}
