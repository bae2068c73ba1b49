//! What `narrows_testbed.h` declares: its structures, its functions, and a C program's ends as peers.
//!
//! The header says what each pointer must be. Null pointers, missing functions and text that is not UTF-8 are errors, and so is a panic
//! where panics unwind.
#![expect(unsafe_code, reason = "pointers from C, calls into C, and functions that C calls")]
use narrows_testbed::cases::Verdict;
use narrows_testbed::{Bytes, Datagram, Ecn, Peer, Report, Shown, Silent, Span, Stream, Testbed, Time};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex};

/// `NARROWS_NEVER`, `NARROWS_UNKNOWN` and `NARROWS_UNLIMITED`.
const NONE: u64 = u64::MAX;
/// Room for a datagram, which is what the path carries.
const CAPACITY: usize = 1500;
/// No IP packet is longer.
const LONGEST: usize = 65_535;

/// `narrows_datagram`
#[repr(C)]
#[derive(Debug)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct NarrowsDatagram {
    pub bytes: *mut u8,
    pub len: usize,
    pub capacity: usize,
    pub headers: u32,
    pub ecn: u8,
}

/// `narrows_stream`
#[repr(C)]
#[derive(Debug)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct NarrowsStream {
    pub unwritten: u64,
    pub wrote: u64,
    pub read: u64,
}

/// `narrows_shown`
#[repr(C)]
#[derive(Debug)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct NarrowsShown {
    pub cwnd: u64,
    pub inflight: u64,
    pub srtt: u64,
    pub mss: u64,
    pub lost: u64,
    pub failed: *const c_char,
    pub failed_at: u64,
}

/// `narrows_peer`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct NarrowsPeer {
    pub state: *mut c_void,
    pub receive: Option<unsafe extern "C" fn(*mut c_void, *const NarrowsDatagram, u64)>,
    pub transmit: Option<unsafe extern "C" fn(*mut c_void, *mut NarrowsDatagram, u64) -> bool>,
    pub timeout: Option<unsafe extern "C" fn(*const c_void) -> u64>,
    pub on_timeout: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    pub application: Option<unsafe extern "C" fn(*mut c_void, *mut NarrowsStream, u64)>,
    pub shown: Option<unsafe extern "C" fn(*const c_void, *mut NarrowsShown)>,
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// `narrows_make`
type Make = unsafe extern "C" fn(*mut c_void, u64, *mut NarrowsPeer) -> bool;

impl NarrowsPeer {
    const EMPTY: NarrowsPeer = NarrowsPeer {
        state: ptr::null_mut(),
        receive: None,
        transmit: None,
        timeout: None,
        on_timeout: None,
        application: None,
        shown: None,
        destroy: None,
    };

    /// A function that is missing.
    fn missing(&self) -> Option<&'static str> {
        let needed = [
            ("receive", self.receive.is_some()),
            ("transmit", self.transmit.is_some()),
            ("timeout", self.timeout.is_some()),
            ("on_timeout", self.on_timeout.is_some()),
            ("application", self.application.is_some()),
        ];
        needed.into_iter().find_map(|(name, is_there)| (!is_there).then_some(name))
    }
}

/// An end of C's, which this owns.
struct End(NarrowsPeer);

// SAFETY: a run and the calls of its ends stay on the thread that started it; the header promises that to the ends.
unsafe impl Send for End {}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(destroy) = self.0.destroy {
            // SAFETY: the state is the function's own, and nothing uses it after this.
            unsafe { destroy(self.0.state) }
        }
    }
}

impl Peer for End {
    fn receive(&mut self, datagram: &mut Datagram, now: Time) {
        let Some(receive) = self.0.receive else { return };
        let view = NarrowsDatagram {
            bytes: datagram.bytes.as_mut_ptr(),
            len: datagram.bytes.len(),
            capacity: datagram.bytes.len(),
            headers: datagram.headers.0 as u32,
            ecn: datagram.ecn as u8,
        };
        // SAFETY: the state is the function's own; the view and its bytes are there until it returns.
        unsafe { receive(self.0.state, &raw const view, now.as_ns()) }
    }

    fn transmit(&mut self, datagram: &mut Datagram, now: Time) -> bool {
        let Some(transmit) = self.0.transmit else { return false };
        // Not `resize`, which writes byte by byte without optimisation.
        datagram.bytes.clear();
        datagram.bytes.extend_from_slice(&[0; CAPACITY]);
        let mut view = NarrowsDatagram {
            bytes: datagram.bytes.as_mut_ptr(),
            len: 0,
            capacity: CAPACITY,
            headers: Datagram::UDP.0 as u32,
            ecn: Ecn::NotEct as u8,
        };
        // SAFETY: the state is the function's own; there are `capacity` bytes, initialised, until it returns.
        let sends = unsafe { transmit(self.0.state, &raw mut view, now.as_ns()) };
        // Zeros stand for a datagram that was too long to be written: the network refuses it by its length.
        datagram.bytes.resize(view.len.min(LONGEST), 0);
        (datagram.headers, datagram.ecn) = (Bytes(view.headers.into()), Ecn::from_bits(view.ecn));
        sends
    }

    fn timeout(&self) -> Option<Time> {
        let timeout = self.0.timeout?;
        // SAFETY: the state is the function's own.
        let at = unsafe { timeout(self.0.state) };
        (at != NONE).then(|| Time::from_ns(at))
    }

    fn on_timeout(&mut self, now: Time) {
        let Some(on_timeout) = self.0.on_timeout else { return };
        // SAFETY: the state is the function's own.
        unsafe { on_timeout(self.0.state, now.as_ns()) }
    }

    fn application(&mut self, stream: &mut Stream, now: Time) {
        let Some(application) = self.0.application else { return };
        let mut view = NarrowsStream { unwritten: stream.unwritten(), wrote: 0, read: 0 };
        // SAFETY: the state is the function's own; the view is there until it returns.
        unsafe { application(self.0.state, &raw mut view, now.as_ns()) }
        // Nobody does more in a turn; what a faulty end says must not overflow the sums.
        let counted = |bytes: u64| bytes.min(u32::MAX.into()) as usize;
        stream.wrote(counted(view.wrote.min(stream.unwritten())));
        stream.has_read(counted(view.read));
    }

    fn shown(&self) -> Shown {
        let Some(shown) = self.0.shown else { return Shown::default() };
        let mut view = NarrowsShown {
            cwnd: NONE,
            inflight: NONE,
            srtt: NONE,
            mss: NONE,
            lost: NONE,
            failed: ptr::null(),
            failed_at: 0,
        };
        // SAFETY: the state is the function's own; the view is there until it returns.
        unsafe { shown(self.0.state, &raw mut view) }
        let known = |value: u64| (value != NONE).then_some(value);
        // SAFETY: not null, so it is a text of the end's, which is still there.
        let reason = (!view.failed.is_null()).then(|| unsafe { CStr::from_ptr(view.failed) });
        Shown {
            cwnd: known(view.cwnd).map(Bytes),
            inflight: known(view.inflight).map(Bytes),
            srtt: known(view.srtt).map(Span::ns),
            lost: known(view.lost),
            mss: known(view.mss).map(Bytes),
            failed: reason.map(|text| (Time::from_ns(view.failed_at), text.to_string_lossy().into_owned())),
        }
    }
}

thread_local! {
    static ERROR: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Text for C. A text of C's own has no zero byte; another loses its.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// Does what a function does; keeps the error, and stops a panic.
fn guarded<T>(otherwise: T, work: impl FnOnce() -> Result<T, String>) -> T {
    let done = catch_unwind(AssertUnwindSafe(work));
    let done = done.unwrap_or_else(|_| Err("the testbed panicked; standard error has the reason".to_owned()));
    done.unwrap_or_else(|message| {
        ERROR.set(Some(c_text(&message)));
        otherwise
    })
}

/// Reads an argument.
///
/// # Safety
/// It is null or ends with a zero byte, and is there as long as the result.
unsafe fn text<'a>(argument: *const c_char, name: &str) -> Result<&'a str, String> {
    if argument.is_null() {
        return Err(format!("{name} is a null pointer"));
    }
    // SAFETY: as the caller says.
    let text = unsafe { CStr::from_ptr(argument) };
    text.to_str().map_err(|_| format!("{name} is not UTF-8"))
}

/// Takes both ends: they are destroyed even if one of them cannot be used.
///
/// # Safety
/// It is null or points to two.
unsafe fn taken(ends: *const NarrowsPeer) -> Result<[Box<dyn Peer>; 2], String> {
    if ends.is_null() {
        return Err("ends is a null pointer".to_owned());
    }
    // SAFETY: as the caller says.
    let both = unsafe { *ends.cast::<[NarrowsPeer; 2]>() };
    let both = both.map(End);
    if let Some((which, name)) = (0..).zip(&both).find_map(|(which, end)| Some((which, end.0.missing()?))) {
        return Err(format!("ends[{which}].{name} is a null pointer"));
    }
    Ok(both.map(|end| -> Box<dyn Peer> { Box::new(end) }))
}

/// `narrows_report`
#[derive(Debug)]
struct NarrowsReport {
    report: Report,
    fault: Option<CString>,
}

impl NarrowsReport {
    fn made(report: Report) -> *mut NarrowsReport {
        let fault = report.fault().map(|fault| c_text(&fault.to_string()));
        Box::into_raw(Box::new(NarrowsReport { report, fault }))
    }
}

/// Reads the argument of a report's function.
///
/// # Safety
/// It is null, or a report that has not been freed.
unsafe fn known<'a>(report: *const NarrowsReport) -> Result<&'a NarrowsReport, String> {
    // SAFETY: as the caller says.
    unsafe { report.as_ref() }.ok_or_else(|| "report is a null pointer".to_owned())
}

// The functions. SAFETY of each: its arguments are what the header asks for.

#[unsafe(no_mangle)]
unsafe extern "C" fn narrows_run_dumbbell(
    rate: *const c_char,
    rtt: *const c_char,
    queue: *const c_char,
    name: *const c_char,
    ends: *const NarrowsPeer,
    duration: u64,
    seed: u64,
) -> *mut NarrowsReport {
    guarded(ptr::null_mut(), || {
        // SAFETY: see above.
        let ends = unsafe { taken(ends) }?;
        // SAFETY: see above.
        let (rate, rtt, queue) = unsafe { (text(rate, "rate")?, text(rtt, "rtt")?, text(queue, "queue")?) };
        // SAFETY: see above.
        let name = unsafe { text(name, "name") }?;
        let network = Testbed::dumbbell(rate, rtt, queue).seed(seed);
        crate::run(network, name, ends, Span::ns(duration)).map(NarrowsReport::made)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn narrows_run_scenario(
    scenario: *const c_char,
    name: *const c_char,
    ends: *const NarrowsPeer,
    duration: u64,
) -> *mut NarrowsReport {
    guarded(ptr::null_mut(), || {
        // SAFETY: see above.
        let ends = unsafe { taken(ends) }?;
        // SAFETY: see above.
        let (scenario, name) = unsafe { (text(scenario, "scenario")?, text(name, "name")?) };
        crate::run(Testbed::scenario(scenario), name, ends, Span::ns(duration)).map(NarrowsReport::made)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn narrows_report_goodput(report: *const NarrowsReport) -> u64 {
    // SAFETY: see above.
    guarded(0, || Ok(unsafe { known(report) }?.report.goodput().as_bps()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn narrows_report_fault(report: *const NarrowsReport) -> *const c_char {
    // SAFETY: see above.
    guarded(ptr::null(), || Ok(unsafe { known(report) }?.fault.as_ref().map_or(ptr::null(), |text| text.as_ptr())))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn narrows_report_figure(
    report: *const NarrowsReport,
    figure: *const c_char,
    from: u64,
    to: u64,
    value: *mut f64,
) -> bool {
    guarded(false, || {
        // SAFETY: see above.
        let (report, figure) = unsafe { (known(report)?, text(figure, "figure")?) };
        // SAFETY: see above.
        let value = unsafe { value.as_mut() }.ok_or("value is a null pointer")?;
        *value = crate::figure(&report.report, figure, Span::ns(from), Span::ns(to))?;
        Ok(true)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn narrows_report_save(report: *const NarrowsReport, folder: *const c_char) -> bool {
    guarded(false, || {
        // SAFETY: see above.
        let (report, folder) = unsafe { (known(report)?, text(folder, "folder")?) };
        report.report.save(folder).map_err(|error| error.to_string())?;
        Ok(true)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn narrows_report_free(report: *mut NarrowsReport) {
    if !report.is_null() {
        // SAFETY: see above; it came from `NarrowsReport::made`.
        drop(unsafe { Box::from_raw(report) });
    }
}

/// What makes the ends of a case's runs.
struct Maker {
    make: Make,
    context: *mut c_void,
    /// Why no ends could be made; then the other runs have none either.
    failed: Arc<Mutex<Option<String>>>,
}

// SAFETY: a case is run by the thread that judges it, one run after another.
unsafe impl Send for Maker {}
// SAFETY: as above.
unsafe impl Sync for Maker {}

impl Maker {
    fn ends(&self, seed: u64) -> [Box<dyn Peer>; 2] {
        let Ok(mut failed) = self.failed.lock() else { return [Box::new(Silent), Box::new(Silent)] };
        if failed.is_none() {
            match self.made(seed) {
                Ok(ends) => return ends,
                Err(message) => *failed = Some(message),
            }
        }
        [Box::new(Silent), Box::new(Silent)]
    }

    fn made(&self, seed: u64) -> Result<[Box<dyn Peer>; 2], String> {
        let mut ends = [NarrowsPeer::EMPTY; 2];
        // SAFETY: the context is the function's own; there is room for two.
        if !unsafe { (self.make)(self.context, seed, ends.as_mut_ptr()) } {
            return Err("make returned false".to_owned());
        }
        // SAFETY: there are two.
        unsafe { taken(ends.as_ptr()) }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn narrows_case(control: *const c_char, index: usize) -> *const c_char {
    guarded(ptr::null(), || {
        // SAFETY: see above.
        let control = if control.is_null() { None } else { Some(unsafe { text(control, "control") }?) };
        Ok(crate::case(control, index).map_or(ptr::null(), CStr::as_ptr))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn narrows_judge(
    case_name: *const c_char,
    name: *const c_char,
    make: Option<Make>,
    context: *mut c_void,
    runs: u32,
    json: *mut *mut c_char,
) -> c_int {
    guarded(-1, || {
        // SAFETY: see above.
        let (case, name, json) = unsafe { (text(case_name, "case_name")?, text(name, "name")?, json.as_mut()) };
        let failed = Arc::default();
        let maker = Maker { make: make.ok_or("make is a null pointer")?, context, failed: Arc::clone(&failed) };
        let (verdict, text) = crate::judge(case, name, runs, Arc::new(move |seed| maker.ends(seed)))?;
        if let Some(message) = failed.lock().ok().and_then(|mut failed| failed.take()) {
            return Err(message);
        }
        if let Some(json) = json {
            *json = c_text(&text).into_raw();
        }
        Ok(match verdict {
            Verdict::Holds => 0,
            Verdict::Fails => 1,
            Verdict::Note => 2,
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn narrows_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: see above; it came from `CString::into_raw`.
        drop(unsafe { CString::from_raw(text) });
    }
}

#[unsafe(no_mangle)]
extern "C" fn narrows_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ref().map_or(ptr::null(), |text| text.as_ptr()))
}
