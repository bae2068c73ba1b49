//! Rate control of real-time media over datagrams: which rate the encoder may use, and how fast its packets may leave.
//!
//! It differs from congestion control of a transport: there is no window and nothing is delivered twice for its sake, a frame that
//! comes late is worth little, and the answer is a rate for an encoder. The receiver reports when each packet arrived (RFC 8888,
//! or RTP's transport-wide sequence numbers); all decisions are the sender's.
use crate::rate::{Bytes, Rate};
use crate::registry;
use crate::time::{Span, Time};
use alloc::boxed::Box;

pub mod gcc;
pub mod nada;
pub mod received;

/// A packet that is in one of the receiver's reports.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reported {
    /// When it was sent.
    pub sent: Time,
    /// When it arrived, by a clock whose offset from the sender's is constant; `None` if it is lost.
    pub arrived: Option<Time>,
    /// Length at the IP layer.
    pub size: Bytes,
    /// A queue has marked it CE.
    pub marked: bool,
}

/// The end of a report.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReportEnd {
    /// When the sender got the report.
    pub now: Time,
    /// The round-trip time of its last packet that arrived, without the time that the receiver held the report back.
    pub rtt: Option<Span>,
}

/// What a controller knows when it is created.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MediaHint {
    /// The lowest rate that the encoder can produce.
    pub min: Rate,
    /// The highest rate that it has a use for.
    pub max: Rate,
    /// The rate at the start.
    pub start: Rate,
    /// Frames per second.
    pub fps: f64,
}

/// The rates that a sender of media may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MediaRates {
    /// For the encoder.
    pub encoder: Rate,
    /// For the packets that wait at the sender.
    pub sending: Rate,
}

/// A rate control of media.
pub trait RateControl: Sized {
    /// Its parameters.
    type Params: crate::params::Params;

    /// A controller at the start of a call.
    fn new(params: &Self::Params, hint: &MediaHint) -> Self;

    /// A packet of a report, in the order of sending.
    fn on_packet(&mut self, packet: &Reported);

    /// The report is complete.
    fn on_report(&mut self, end: &ReportEnd);

    /// The rates while this much waits at the sender.
    fn rates(&self, waiting: Bytes) -> MediaRates;
}

registry! {
    /// A rate control of media, with its parameters.
    pub enum MediaControlConfig for "control" {
        "gcc", Gcc(gcc::GccParams), "Gradient of the one-way delay, and loss, as in WebRTC (draft-ietf-rmcat-gcc-02).";
        "nada", Nada(nada::NadaParams), "One signal of delay, loss and marks that is held at a reference (RFC 8698).";
    }
}

impl MediaControlConfig {
    /// The controller.
    pub fn build(&self, hint: &MediaHint) -> MediaControl {
        match self {
            MediaControlConfig::Gcc(params) => MediaControl::Gcc(Box::new(gcc::Gcc::new(params, hint))),
            MediaControlConfig::Nada(params) => MediaControl::Nada(Box::new(nada::Nada::new(params, hint))),
        }
    }
}

/// Any of the controllers.
#[derive(Clone, Debug)]
pub enum MediaControl {
    /// Google Congestion Control.
    Gcc(Box<gcc::Gcc>),
    /// Network-Assisted Dynamic Adaptation.
    Nada(Box<nada::Nada>),
}

impl MediaControl {
    /// See [`RateControl::on_packet`].
    pub fn on_packet(&mut self, packet: &Reported) {
        match self {
            MediaControl::Gcc(gcc) => gcc.on_packet(packet),
            MediaControl::Nada(nada) => nada.on_packet(packet),
        }
    }

    /// See [`RateControl::on_report`].
    pub fn on_report(&mut self, end: &ReportEnd) {
        match self {
            MediaControl::Gcc(gcc) => gcc.on_report(end),
            MediaControl::Nada(nada) => nada.on_report(end),
        }
    }

    /// See [`RateControl::rates`].
    pub fn rates(&self, waiting: Bytes) -> MediaRates {
        match self {
            MediaControl::Gcc(gcc) => gcc.rates(waiting),
            MediaControl::Nada(nada) => nada.rates(waiting),
        }
    }

    /// Memory outside its own size, bytes.
    pub fn bytes(&self) -> usize {
        match self {
            MediaControl::Gcc(gcc) => gcc.bytes(),
            MediaControl::Nada(nada) => nada.bytes(),
        }
    }
}
