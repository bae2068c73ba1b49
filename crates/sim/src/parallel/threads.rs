//! What the threads of a run do in each window.
use super::channel::{Ended, Inlet, Outlet};
use super::merge::Heads;
use crate::budget::Stopped;
use crate::host::{Flow, InFlight};
use crate::segment::Segment;
use crate::side::{
    Delivery, Departure, Destination, NetworkAlone, NetworkAndReceivers, Receivers, Senders, Share, Side,
};
use crate::world::{Hosts, World};
use crate::{build, outcome};
use narrows_core::Time;
use narrows_scenario::Scenario;
use narrows_world::network::Network;
use narrows_world::{Unwatched, Wanted, Watch};

impl From<Ended> for Stopped {
    /// A thread that lost another one ends, too. The other one knows why.
    fn from(Ended: Ended) -> Stopped {
        Stopped::Cancelled
    }
}

/// A part with the network.
pub(super) trait NetworkPart: Side<Uplink = Network<Segment>> {
    /// What the network hands to the threads of the hosts.
    type Packet: Copy + Send;
    /// What a thread of hosts has besides its senders.
    type Ends: Ends<Self::Packet> + Send;

    /// Divides the flows among this number of parts.
    fn divide(returns: &mut Self::Returns, parts: u32);

    /// The packets for each of these parts.
    fn batches(returns: &mut Self::Returns) -> &mut Vec<Vec<Self::Packet>>;

    /// Adds the figures of arrivals to the flows at the end. `receivers` are the flows of the other parts that have receivers.
    fn join_arrivals(hosts: &mut Hosts<Self>, flows: &mut [Flow], receivers: Vec<Flow>);

    /// Memory of what the part knows of flows, bytes.
    fn flow_bytes(world: &World<Self>) -> usize;
}

impl NetworkPart for NetworkAndReceivers {
    type Packet = InFlight;
    type Ends = NoReceivers;

    fn divide(returns: &mut Vec<Vec<InFlight>>, parts: u32) {
        returns.resize_with(parts as usize, Vec::new);
    }

    fn batches(returns: &mut Vec<Vec<InFlight>>) -> &mut Vec<Vec<InFlight>> {
        returns
    }

    fn join_arrivals(hosts: &mut Hosts<Self>, flows: &mut [Flow], _: Vec<Flow>) {
        join_records(flows, std::mem::take(&mut hosts.flows));
    }

    fn flow_bytes(world: &World<Self>) -> usize {
        outcome::flow_bytes(world)
    }
}

impl NetworkPart for NetworkAlone {
    type Packet = Delivery;
    type Ends = World<Receivers>;

    fn divide(returns: &mut Self::Returns, parts: u32) {
        returns.batches.resize_with(parts as usize, Vec::new);
        for (flow, destination) in returns.destinations.iter_mut().enumerate() {
            let (part, flow) = Share::find(flow as u32, parts);
            (destination.part, destination.flow) = (part as u32, flow);
        }
    }

    fn batches(returns: &mut Self::Returns) -> &mut Vec<Vec<Delivery>> {
        &mut returns.batches
    }

    fn join_arrivals(hosts: &mut Hosts<Self>, flows: &mut [Flow], receivers: Vec<Flow>) {
        join_records(flows, receivers);
        for (flow, destination) in flows.iter_mut().zip(&hosts.returns.destinations) {
            flow.record.lost = destination.lost;
        }
    }

    fn flow_bytes(world: &World<Self>) -> usize {
        world.hosts.returns.destinations.capacity() * size_of::<Destination>()
    }
}

fn join_records(flows: &mut [Flow], receivers: Vec<Flow>) {
    for (flow, receiver) in flows.iter_mut().zip(receivers) {
        flow.record.join_arrivals(receiver.record);
    }
}

/// The receivers' ends of the flows whose senders a thread has, or their absence.
pub(super) trait Ends<Packet>: Sized {
    fn build(scenario: &Scenario, wanted: &Wanted, share: Share) -> Self;

    /// Takes what the network handed over up to the end of a window; acknowledgments enter the return pipes of their senders.
    fn take(&mut self, packets: &[Packet], last: Time, senders: &mut World<Senders>) -> Result<(), Stopped>;

    /// Whether they have something to do after the last window of the senders.
    const STAY: bool;

    fn handled(&self) -> u64;

    /// Memory, bytes.
    fn bytes(&self) -> usize;

    /// The receivers' flows at the end of the run.
    fn into_flows(self) -> Vec<Flow>;
}

/// The receivers are beside the network.
pub(super) struct NoReceivers;

impl Ends<InFlight> for NoReceivers {
    const STAY: bool = false;

    fn build(_: &Scenario, _: &Wanted, _: Share) -> NoReceivers {
        NoReceivers
    }

    fn take(&mut self, packets: &[InFlight], _: Time, senders: &mut World<Senders>) -> Result<(), Stopped> {
        let hosts = &mut senders.hosts;
        for &one in packets {
            let pipe = hosts.flows[one.flow as usize].place_of(one.what.subflow()).pipe as usize;
            hosts.enter_pipe(pipe, one);
        }
        Ok(())
    }

    fn handled(&self) -> u64 {
        0
    }

    fn bytes(&self) -> usize {
        0
    }

    fn into_flows(self) -> Vec<Flow> {
        Vec::new()
    }
}

impl Ends<Delivery> for World<Receivers> {
    const STAY: bool = true;

    fn build(scenario: &Scenario, wanted: &Wanted, share: Share) -> World<Receivers> {
        build::world(scenario, wanted, share)
    }

    fn take(&mut self, packets: &[Delivery], last: Time, senders: &mut World<Senders>) -> Result<(), Stopped> {
        self.receive_through(last, packets)?;
        for (pipe, one) in self.hosts.returns.drain(..) {
            senders.hosts.enter_pipe(pipe as usize, one);
        }
        Ok(())
    }

    fn handled(&self) -> u64 {
        self.handled
    }

    fn bytes(&self) -> usize {
        let returns = self.hosts.returns.capacity() * size_of::<(u32, InFlight)>();
        outcome::flow_bytes(self) + outcome::bytes_but_flows(self) + returns
    }

    fn into_flows(self) -> Vec<Flow> {
        self.hosts.flows
    }
}

/// The thread of the network.
pub(super) struct NetworkThread<N: NetworkPart> {
    pub(super) world: World<N>,
    there: Vec<Inlet<Departure>>,
    back: Vec<Outlet<N::Packet>>,
    /// The packets of a window, and the memory to merge them.
    gone: Vec<Vec<Departure>>,
    heads: Heads,
}

impl<N: NetworkPart> NetworkThread<N> {
    /// Without any hosts; `parts` is the number of their threads.
    pub(super) fn new(mut world: World<N>, parts: u32) -> NetworkThread<N> {
        N::divide(&mut world.hosts.returns, parts);
        NetworkThread { world, there: Vec::new(), back: Vec::new(), gone: Vec::new(), heads: Heads::default() }
    }

    /// Adds the channels of the next thread of hosts.
    pub(super) fn connect(&mut self, there: Inlet<Departure>, back: Outlet<N::Packet>) {
        self.there.push(there);
        self.back.push(back);
    }

    /// Memory of the flows and the buffers, bytes.
    pub(super) fn bytes(&self) -> usize {
        let channels = self.there.iter().map(Inlet::bytes).chain(self.back.iter().map(Outlet::bytes));
        N::flow_bytes(&self.world) + channels.sum::<usize>()
    }

    /// Handles all windows.
    pub(super) fn run(&mut self, windows: impl Iterator<Item = Time>, watch: &mut dyn Watch) -> Result<(), Stopped> {
        for last in windows {
            self.go_on(last, watch)?;
        }
        self.world.finish()
    }

    /// Handles a window up to its end.
    fn go_on(&mut self, last: Time, watch: &mut dyn Watch) -> Result<(), Stopped> {
        for inlet in &self.there {
            self.gone.push(inlet.receive()?);
        }
        self.world.run_with(last, self.heads.merge(&self.gone), watch)?;
        for (inlet, gone) in self.there.iter().zip(self.gone.drain(..)) {
            inlet.give_back(gone);
        }
        for (outlet, batch) in self.back.iter().zip(N::batches(&mut self.world.hosts.returns)) {
            // This fails for the last windows, because the senders end before the network does.
            if outlet.send(batch).is_err() {
                batch.clear();
            }
        }
        Ok(())
    }
}

/// A thread of hosts.
pub(super) struct HostThread<N: NetworkPart> {
    senders: World<Senders>,
    ends: N::Ends,
    back: Inlet<N::Packet>,
    there: Outlet<Departure>,
}

impl<N: NetworkPart> HostThread<N> {
    /// The hosts of a share of the flows, with the channels from the network and to it.
    pub(super) fn new(
        scenario: &Scenario,
        wanted: &Wanted,
        share: Share,
        back: Inlet<N::Packet>,
        there: Outlet<Departure>,
    ) -> HostThread<N> {
        let (senders, ends) = (build::world(scenario, wanted, share), N::Ends::build(scenario, wanted, share));
        HostThread { senders, ends, back, there }
    }

    pub(super) fn handled(&self) -> u64 {
        self.senders.handled + self.ends.handled()
    }

    /// Memory of everything but the senders' flows, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.ends.bytes() + outcome::bytes_but_flows(&self.senders) + self.back.bytes() + self.there.bytes()
    }

    /// The flows of its senders, and those of its receivers.
    pub(super) fn into_flows(self) -> (Vec<Flow>, Vec<Flow>) {
        (self.senders.hosts.flows, self.ends.into_flows())
    }

    /// Handles all windows. What the network handed over is taken this number of windows later.
    pub(super) fn run(&mut self, windows: impl Iterator<Item = Time> + Clone, lag: usize) -> Result<(), Stopped> {
        let mut returned = windows.clone();
        for (n, last) in windows.enumerate() {
            if n >= lag
                && let Some(last) = returned.next()
            {
                self.take_back(last)?;
            }
            // The network's thread reports to the watch.
            self.senders.run_through(last, &mut Unwatched)?;
            self.there.send(&mut self.senders.uplink)?;
        }
        self.senders.keep_to_budget()?;
        if N::Ends::STAY { returned.try_for_each(|last| self.take_back(last)) } else { Ok(()) }
    }

    /// Takes what the network handed over in the window that ends then.
    fn take_back(&mut self, last: Time) -> Result<(), Stopped> {
        let back = self.back.receive()?;
        self.ends.take(&back, last, &mut self.senders)?;
        self.back.give_back(back);
        Ok(())
    }
}
