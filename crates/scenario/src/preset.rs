//! What people do on a link, by name: `call`, `game`, `download`. A preset is traffic with parameters that go together and the
//! transport that it usually has. `--flows`, a flow's `traffic` and `narrows advise --uses` read this list.
use crate::traffic::Traffic;
use crate::transport::Transport;
use narrows_core::registry::{Registered, spelled};

/// A preset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Another name for it.
    pub alias: Option<&'static str>,
    /// One sentence.
    pub summary: &'static str,
    kind: &'static str,
    params: &'static [(&'static str, &'static str)],
    transport: &'static str,
    /// Whether it sends data down and up.
    pub directions: [bool; 2],
}

/// A voice call.
pub const CALL: Preset = Preset {
    name: "call",
    alias: Some("voip"),
    // 160 bytes of speech and RTP's header.
    summary: "A voice call: G.711, 172 bytes every 20 ms (UDP).",
    kind: "thin",
    params: &[("size", "172B"), ("interval", "20ms")],
    transport: "udp",
    directions: [true, true],
};

/// A video call.
pub const VIDEO_CALL: Preset = Preset {
    name: "video-call",
    alias: None,
    summary: "A video call of up to 2.5 Mbit/s under GCC (UDP).",
    kind: "video",
    params: &[],
    transport: "udp",
    directions: [true, true],
};

/// A game.
pub const GAME: Preset = Preset {
    name: "game",
    alias: None,
    summary: "A game: an update of 100 bytes 60 times a second (UDP).",
    kind: "thin",
    params: &[("size", "100B"), ("interval", "16667us")],
    transport: "udp",
    directions: [true, true],
};

/// A video as a server sends a live stream.
pub const VIDEO_STREAM: Preset = Preset {
    name: "video-stream",
    alias: None,
    summary: "A live stream of 5 Mbit/s: 62.5 kB every 100 ms (TCP).",
    kind: "thin",
    params: &[("size", "62500B"), ("interval", "100ms")],
    transport: "tcp",
    directions: [true, false],
};

/// A download.
pub const DOWNLOAD: Preset = Preset {
    name: "download",
    alias: None,
    summary: "A long download: bulk traffic (TCP).",
    kind: "bulk",
    params: &[],
    transport: "tcp",
    directions: [true, false],
};

/// An upload.
pub const UPLOAD: Preset = Preset {
    name: "upload",
    alias: None,
    summary: "A long upload: bulk traffic (TCP).",
    kind: "bulk",
    params: &[],
    transport: "tcp",
    directions: [false, true],
};

/// Every preset.
pub const ALL: [Preset; 6] = [CALL, VIDEO_CALL, GAME, VIDEO_STREAM, DOWNLOAD, UPLOAD];

/// Every name, aliases after their names.
pub(crate) const NAMES: [&str; 7] =
    [CALL.name, "voip", VIDEO_CALL.name, GAME.name, VIDEO_STREAM.name, DOWNLOAD.name, UPLOAD.name];

impl Preset {
    /// The preset of this name, in any spelling that the registries read.
    pub fn named(name: &str) -> Option<&'static Preset> {
        let name = spelled(name);
        let is = |known: &str| spelled(known) == name;
        ALL.iter().find(|preset| is(preset.name) || preset.alias.is_some_and(is))
    }

    /// The data that it sends in one direction.
    pub fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::named(self.kind).unwrap_or(Traffic::Bulk(Default::default()));
        for (name, value) in self.params {
            // `presets_are_legal` sets each.
            let _ = traffic.set(name, value);
        }
        traffic
    }

    /// What carries it.
    pub fn transport(&self) -> Transport {
        Transport::named(self.transport).unwrap_or(Transport::Udp(Default::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_legal() {
        for preset in ALL {
            let traffic = preset.traffic();
            assert_eq!(traffic.name(), preset.kind, "{}", preset.name);
            for (name, value) in preset.params {
                assert_eq!(traffic.get(name).as_deref(), Some(*value), "{}", preset.name);
            }
            assert!(traffic.validate().is_ok() && traffic.carriers().contains(&preset.transport().name()));
            assert_eq!(preset.transport().name(), preset.transport);
            assert!(Traffic::NAMES.iter().all(|name| *name != preset.name), "one meaning for {}", preset.name);
        }
        let names = ALL.iter().flat_map(|preset| std::iter::once(preset.name).chain(preset.alias));
        assert_eq!(names.collect::<Vec<_>>(), NAMES);
    }

    #[test]
    fn a_preset_is_traffic_by_its_name() {
        let call = Traffic::named("VoIP").expect("a call");
        assert_eq!(call, Preset::named("call").expect("the same").traffic());
        assert_eq!(call.to_string(), "thin:size=172B");
        assert_eq!(Traffic::named("video_call").map(|call| call.name()), Some("video"));
        assert_eq!(Preset::named("thin"), None);
    }
}
