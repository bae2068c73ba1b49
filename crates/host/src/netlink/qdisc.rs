//! Requests about queueing disciplines, and about what a device hands them.
use std::io;

use netlink_packet_core::{
    DefaultNla, Emitable, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, Nla,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage};
use netlink_packet_route::tc::{
    TcAction, TcActionAttribute, TcActionMirrorOption, TcActionOption, TcActionType, TcAttribute,
    TcFilterMatchAllOption, TcHandle, TcMessage, TcMirror, TcMirrorActionType, TcOption,
};

use super::{Netlink, link};
use crate::device::{Device, Qdisc};

impl Netlink {
    /// Every device of the namespace.
    pub(crate) fn devices(&mut self) -> io::Result<Vec<Device>> {
        let mut found = Vec::new();
        self.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()), |answer| {
            let RouteNetlinkMessage::NewLink(message) = answer else { return };
            let mut device = Device {
                index: message.header.index,
                is_up: message.header.flags.contains(LinkFlags::Up),
                has_ethernet_header: message.header.link_layer_type == LinkLayerType::Ether,
                ..Device::default()
            };
            for attribute in message.attributes {
                match attribute {
                    LinkAttribute::IfName(name) => device.name = name,
                    LinkAttribute::Mtu(mtu) => device.mtu = mtu,
                    LinkAttribute::GsoMaxSegs(segments) => device.gso_max_segs = Some(segments),
                    LinkAttribute::GroMaxSize(size) => device.gro_max_size = Some(size),
                    LinkAttribute::GroIpv4MaxSize(size) => device.gro_ipv4_max_size = Some(size),
                    _ => {}
                }
            }
            found.push(device);
        })?;
        Ok(found)
    }

    /// Changes attributes of a device.
    pub(crate) fn set_attributes(&mut self, index: u32, attributes: Vec<LinkAttribute>) -> io::Result<()> {
        let mut message = link(index);
        message.attributes = attributes;
        self.change(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Makes a device of the kind `ifb`.
    pub(crate) fn add_ifb(&mut self, name: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        let kind = vec![LinkInfo::Kind(InfoKind::Ifb)];
        message.attributes = vec![LinkAttribute::IfName(name.into()), LinkAttribute::LinkInfo(kind)];
        self.change(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Removes a device.
    pub(crate) fn delete_device(&mut self, index: u32) -> io::Result<()> {
        self.change(RouteNetlinkMessage::DelLink(link(index)), 0)
    }

    /// The disciplines of a device that have no parent but the device: at its root, and at its ingress.
    pub(crate) fn qdiscs(&mut self, index: u32) -> io::Result<Vec<Qdisc>> {
        let mut found = Vec::new();
        self.dump(RouteNetlinkMessage::GetQueueDiscipline(TcMessage::with_index(index as i32)), |answer| {
            // A dump is of all devices.
            let RouteNetlinkMessage::NewQueueDiscipline(message) = answer else { return };
            let parent = message.header.parent;
            if message.header.index != index as i32 || ![TcHandle::ROOT, TcHandle::INGRESS].contains(&parent) {
                return;
            }
            let mut qdisc = Qdisc {
                is_ingress: parent == TcHandle::INGRESS,
                handle: message.header.handle.into(),
                ..Qdisc::default()
            };
            for attribute in &message.attributes {
                match attribute {
                    TcAttribute::Kind(kind) => qdisc.kind.clone_from(kind),
                    TcAttribute::Options(options) => qdisc.options = payload(options),
                    _ => {}
                }
            }
            found.push(qdisc);
        })?;
        Ok(found)
    }

    /// Puts a discipline at a device's root, in place of what is there. Without options it has its defaults.
    pub(crate) fn replace_root(&mut self, index: u32, kind: &str, handle: u32, options: &[u8]) -> io::Result<()> {
        let mut message = TcMessage::with_index(index as i32);
        message.header.parent = TcHandle::ROOT;
        message.header.handle = handle.into();
        message.attributes = with_options(kind, options);
        self.change(RouteNetlinkMessage::NewQueueDiscipline(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Changes options of the discipline at a device's root, which is of this kind.
    pub(crate) fn change_root(&mut self, index: u32, kind: &str, options: &[u8]) -> io::Result<()> {
        let mut message = TcMessage::with_index(index as i32);
        message.header.parent = TcHandle::ROOT;
        message.attributes = with_options(kind, options);
        self.change(RouteNetlinkMessage::NewQueueDiscipline(message), 0)
    }

    /// Changes options of a class.
    pub(crate) fn change_class(&mut self, index: u32, class: TcHandle, kind: &str, options: &[u8]) -> io::Result<()> {
        let mut message = TcMessage::with_index(index as i32);
        message.header.parent = TcHandle { minor: 0, ..class };
        message.header.handle = class;
        message.attributes = with_options(kind, options);
        self.change(RouteNetlinkMessage::NewTrafficClass(message), 0)
    }

    /// Takes the discipline off a device's root. The kernel puts its default there.
    pub(crate) fn delete_root(&mut self, index: u32) -> io::Result<()> {
        let mut message = TcMessage::with_index(index as i32);
        message.header.parent = TcHandle::ROOT;
        self.change(RouteNetlinkMessage::DelQueueDiscipline(message), 0)
    }

    /// Lets filters see what comes in at a device.
    pub(crate) fn add_clsact(&mut self, index: u32) -> io::Result<()> {
        let message = clsact(index);
        self.change(RouteNetlinkMessage::NewQueueDiscipline(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Undoes [`Netlink::add_clsact`]; the filters go with it.
    pub(crate) fn delete_clsact(&mut self, index: u32) -> io::Result<()> {
        self.change(RouteNetlinkMessage::DelQueueDiscipline(clsact(index)), 0)
    }

    /// Sends what comes in at a device out through another one: `matchall action mirred egress redirect`.
    pub(crate) fn redirect_ingress(&mut self, from: u32, to: u32) -> io::Result<()> {
        let mut redirect = TcMirror::default();
        redirect.generic.action = TcActionType::Stolen;
        redirect.eaction = TcMirrorActionType::EgressRedir;
        redirect.ifindex = to;
        let mut action = TcAction::default();
        action.tab = 1;
        action.attributes = vec![
            TcActionAttribute::Kind("mirred".into()),
            TcActionAttribute::Options(vec![TcActionOption::Mirror(TcActionMirrorOption::Parms(redirect))]),
        ];
        let mut message = TcMessage::with_index(from as i32);
        message.header.parent = TcHandle { major: u16::MAX, minor: TcHandle::MIN_INGRESS };
        // Priority 1, all protocols (ETH_P_ALL in network byte order).
        message.header.info = 1 << 16 | u32::from(ETH_P_ALL.to_be());
        message.attributes = vec![
            TcAttribute::Kind("matchall".into()),
            TcAttribute::Options(vec![TcOption::MatchAll(TcFilterMatchAllOption::Action(vec![action]))]),
        ];
        self.send(
            RouteNetlinkMessage::NewTrafficFilter(message),
            NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
        )?;
        self.answers(|_| ())
    }
}

/// linux/rtnetlink.h.
const TCA_OPTIONS: u16 = 2;
/// linux/if_ether.h.
const ETH_P_ALL: u16 = 3;

fn with_options(kind: &str, options: &[u8]) -> Vec<TcAttribute> {
    let mut attributes = vec![TcAttribute::Kind(kind.into())];
    if !options.is_empty() {
        attributes.push(TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options.to_vec())));
    }
    attributes
}

fn clsact(index: u32) -> TcMessage {
    let mut message = TcMessage::with_index(index as i32);
    message.header.parent = TcHandle::CLSACT;
    message.header.handle = TcHandle { major: u16::MAX, minor: 0 };
    message.attributes.push(TcAttribute::Kind("clsact".into()));
    message
}

/// The bytes of a discipline's options, as they can be sent back.
fn payload(options: &[TcOption]) -> Vec<u8> {
    // Options that the library does not know are kept as one attribute, which is TCA_OPTIONS itself.
    if let [TcOption::Other(whole)] = options {
        let mut bytes = vec![0; whole.value_len()];
        whole.emit_value(&mut bytes);
        return bytes;
    }
    let mut bytes = vec![0; options.buffer_len()];
    options.emit(&mut bytes);
    bytes
}
