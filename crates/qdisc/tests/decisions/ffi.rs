//! Calls into the headers' shells in user space, `c/test/*.c`.
#![expect(unsafe_code, reason = "functions written in C have no safe form")]
use narrows_core::queue::Next;
use narrows_core::{DropReason, PacketMeta, Time};
use std::ffi::c_void;

/// `struct nwt_meta`.
#[repr(C)]
struct Meta {
    depart: u64,
    hash: u32,
    len: u32,
    capable: u8,
    marked: u8,
    spin: u8,
}

/// `struct nwt_drop`.
#[repr(C)]
struct Drop {
    id: u32,
    reason: u32,
}

/// `struct nwt_result`.
#[repr(C)]
struct Answer {
    next: u32,
    id: u32,
    at: u64,
    drops: *mut Drop,
    n_drops: u32,
    room: u32,
    marked: u32,
}

/// `struct nwt_totals`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) more: [u64; 10],
}

/// The functions of one shell.
pub(crate) struct Functions {
    new: unsafe extern "C" fn(*const u64) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    enqueue: unsafe extern "C" fn(*mut c_void, u32, *const Meta, u64, *mut Answer),
    dequeue: unsafe extern "C" fn(*mut c_void, u64, *mut Answer),
    on_rate: unsafe extern "C" fn(*mut c_void, u64, u64),
    observe: unsafe extern "C" fn(*mut c_void, *const u32, u64, *mut Totals),
    /// How many parameters `new` reads.
    parameters: usize,
}

macro_rules! shells {
    ($( $FUNCTIONS:ident($parameters:literal) = $new:ident, $free:ident, $enqueue:ident, $dequeue:ident, $on_rate:ident, $observe:ident; )*) => {
        unsafe extern "C" {
            $(
                fn $new(parameters: *const u64) -> *mut c_void;
                fn $free(shell: *mut c_void);
                fn $enqueue(shell: *mut c_void, id: u32, meta: *const Meta, now: u64, answer: *mut Answer);
                fn $dequeue(shell: *mut c_void, now: u64, answer: *mut Answer);
                fn $on_rate(shell: *mut c_void, rate: u64, now: u64);
                fn $observe(shell: *mut c_void, hash: *const u32, now: u64, totals: *mut Totals);
            )*
        }
        $(
            pub(crate) const $FUNCTIONS: Functions = Functions {
                new: $new, free: $free, enqueue: $enqueue, dequeue: $dequeue, on_rate: $on_rate, observe: $observe,
                parameters: $parameters,
            };
        )*
    };
}

shells! {
    COCOA(14) = nwt_cocoa_new, nwt_cocoa_free, nwt_cocoa_enqueue, nwt_cocoa_dequeue, nwt_cocoa_on_rate, nwt_cocoa_observe;
    CP(11) = nwt_cp_new, nwt_cp_free, nwt_cp_enqueue, nwt_cp_dequeue, nwt_cp_on_rate, nwt_cp_observe;
    FQ_CP(13) = nwt_fq_cp_new, nwt_fq_cp_free, nwt_fq_cp_enqueue, nwt_fq_cp_dequeue, nwt_fq_cp_on_rate, nwt_fq_cp_observe;
    FQ_CODEL_FAIR(12) = nwt_fair_new, nwt_fair_free, nwt_fair_enqueue, nwt_fair_dequeue, nwt_fair_on_rate, nwt_fair_observe;
    LFQ(10) = nwt_lfq_new, nwt_lfq_free, nwt_lfq_enqueue, nwt_lfq_dequeue, nwt_lfq_on_rate, nwt_lfq_observe;
}

unsafe extern "C" {
    fn nwt_policer_rule(threshold: u64, most: u64, excess: u64, mtu: u64) -> u64;
    fn nwt_mul_div(a: u64, b: u64, d: u64) -> u64;
    fn nwt_codel_spacing(interval: u64, rec_inv_sqrt: u32) -> u64;
}

/// The depth of a policer's bucket by its rule, bytes.
pub(crate) fn policer_rule(threshold: u64, most: u64, excess: u64, mtu: u64) -> u64 {
    // SAFETY: it computes with its arguments and reads nothing else.
    unsafe { nwt_policer_rule(threshold, most, excess, mtu) }
}

/// a · b / d, or the largest number.
pub(crate) fn mul_div(a: u64, b: u64, d: u64) -> u64 {
    // SAFETY: it computes with its arguments and reads nothing else.
    unsafe { nwt_mul_div(a, b, d) }
}

/// CoDel's time to the next drop, ns.
pub(crate) fn codel_spacing(interval: u64, rec_inv_sqrt: u16) -> u64 {
    // SAFETY: it computes with its arguments and reads nothing else.
    unsafe { nwt_codel_spacing(interval, u32::from(rec_inv_sqrt)) }
}

/// A discipline in C.
pub(crate) struct Shell {
    functions: Functions,
    shell: *mut c_void,
    answer: Answer,
}

impl Shell {
    /// With parameters in the order in which the shell's `new` reads them.
    pub(crate) fn new(functions: Functions, parameters: &[u64]) -> Shell {
        assert_eq!(parameters.len(), functions.parameters);
        // SAFETY: `new` reads as many numbers as there are, and makes a shell or ends the process.
        let shell = unsafe { (functions.new)(parameters.as_ptr()) };
        let answer = Answer { next: 0, id: 0, at: 0, drops: std::ptr::null_mut(), n_drops: 0, room: 0, marked: 0 };
        Shell { functions, shell, answer }
    }

    /// Offers a packet. Drops are appended; says whether a packet that was queued is marked.
    pub(crate) fn enqueue(
        &mut self,
        id: u32,
        meta: &PacketMeta,
        now: Time,
        drops: &mut Vec<(u32, DropReason)>,
    ) -> bool {
        let capable = u8::from(meta.ecn.is_capable());
        let meta = Meta {
            depart: meta.depart.as_ns(),
            hash: meta.hash,
            len: meta.len,
            capable,
            marked: 0,
            spin: u8::from(meta.spin),
        };
        (self.answer.n_drops, self.answer.marked) = (0, 0);
        // SAFETY: the shell is `new`'s, alive until `drop`, and used by one thread; it copies `meta` and owns `answer.drops`.
        unsafe { (self.functions.enqueue)(self.shell, id, &raw const meta, now.as_ns(), &raw mut self.answer) };
        self.take_drops(drops);
        self.answer.marked > 0
    }

    /// Asks for a packet: what comes next, by the packet's number, and whether it is marked.
    pub(crate) fn dequeue(&mut self, now: Time, drops: &mut Vec<(u32, DropReason)>) -> (NextId, bool) {
        (self.answer.n_drops, self.answer.marked) = (0, 0);
        // SAFETY: as in `enqueue`.
        unsafe { (self.functions.dequeue)(self.shell, now.as_ns(), &raw mut self.answer) };
        self.take_drops(drops);
        let next = match self.answer.next {
            0 => NextId::Packet(self.answer.id),
            1 => NextId::At(Time::from_ns(self.answer.at)),
            2 => NextId::Empty,
            next => panic!("{next} is no answer to a dequeue"),
        };
        (next, self.answer.marked > 0)
    }

    /// The link's rate has changed, bit/s.
    pub(crate) fn on_rate(&mut self, rate: u64, now: Time) {
        // SAFETY: as in `enqueue`.
        unsafe { (self.functions.on_rate)(self.shell, rate, now.as_ns()) };
    }

    /// Totals, and numbers of the flow with this hash.
    pub(crate) fn observe(&mut self, hash: Option<u32>, now: Time) -> Totals {
        let hash = hash.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let mut totals = Totals::default();
        // SAFETY: as in `enqueue`; the hash is read during the call, if there is one, and the numbers are written to `totals`.
        unsafe { (self.functions.observe)(self.shell, hash, now.as_ns(), &raw mut totals) };
        totals
    }

    fn take_drops(&mut self, drops: &mut Vec<(u32, DropReason)>) {
        for n in 0..self.answer.n_drops as usize {
            // SAFETY: the shell has written that many elements, and keeps them until the next call.
            let drop = unsafe { &*self.answer.drops.add(n) };
            let reason = REASONS.get(drop.reason as usize).unwrap_or_else(|| panic!("no reason {}", drop.reason));
            drops.push((drop.id, *reason));
        }
    }
}

impl core::ops::Drop for Shell {
    fn drop(&mut self) {
        // SAFETY: nobody uses the shell after this; the drops were allocated by the C library's `realloc`, or are none.
        unsafe {
            (self.functions.free)(self.shell);
            free(self.answer.drops.cast());
        }
    }
}

unsafe extern "C" {
    fn free(memory: *mut c_void);
}

/// [`Next`] with the packet's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextId {
    Packet(u32),
    At(Time),
    Empty,
}

impl From<Next> for NextId {
    fn from(next: Next) -> NextId {
        match next {
            Next::Packet(id) => NextId::Packet(id.index() as u32),
            Next::At(time) => NextId::At(time),
            Next::Empty => NextId::Empty,
        }
    }
}

/// `enum nw_reason`.
const REASONS: [DropReason; 6] = [
    DropReason::QueueFull,
    DropReason::FlowLimit,
    DropReason::Policed,
    DropReason::Unclassified,
    DropReason::Aqm,
    DropReason::Evicted,
];
