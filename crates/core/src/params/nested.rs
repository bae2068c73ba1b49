//! Parameters that name an entry of a registry, with parameters of its own: `"cubic"`, `"cubic:hystart=false"`,
//! `"share:cut=0.56;intervals=8"`.
use super::{ParamValue, Unit};
use crate::registry::{self, Registered};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// An entry of a registry, as a parameter of another.
#[derive(Clone, PartialEq, Debug)]
pub struct Nested<T>(pub Box<T>);

impl<T> Nested<T> {
    /// This entry.
    pub fn new(config: T) -> Nested<T> {
        Nested(Box::new(config))
    }
}

impl<T: Registered> ParamValue for Nested<T> {
    fn unit() -> Unit {
        Unit::Kind(T::names())
    }

    fn parse(text: &str) -> Option<Nested<T>> {
        read(text)?.ok().map(Nested::new)
    }

    fn show(&self) -> String {
        self.0.to_string().replace(',', ";")
    }

    fn allowed() -> String {
        let nests = |name: &&&str| T::named(name).is_some_and(|config| config.nests());
        let names: Vec<&str> = T::names().iter().filter(nests).copied().collect();
        format!("{}; with parameters: \"NAME:KEY=VALUE;KEY=VALUE\"", names.join(" | "))
    }

    fn instead(text: &str) -> Option<String> {
        read::<T>(text.trim_matches('`'))?.err()
    }
}

/// `None` if there is no such entry or it is not allowed here; an error, which says what is allowed, if its parameters are wrong.
fn read<T: Registered>(text: &str) -> Option<Result<T, String>> {
    T::named(text.split(':').next()?.trim()).filter(T::nests)?;
    registry::read_with(text, &[';', ','])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::ControllerConfig;
    use crate::detector::DetectorConfig;

    #[test]
    fn entries_survive_being_written() {
        let text = "cubic:hystart=false;fast_convergence=false";
        let cubic = Nested::<ControllerConfig>::parse(text).map(|nested| nested.show());
        assert_eq!(cubic.as_deref().and_then(Nested::<ControllerConfig>::parse).map(|n| n.show()), cubic);
        assert!(cubic.is_some_and(|shown| shown.starts_with("cubic:") && shown.contains("hystart=false")));
        assert!(Nested::<ControllerConfig>::parse("cubic:hystart=perhaps").is_none());
        assert!(Nested::<ControllerConfig>::parse("cubic:no_such=1").is_none());
        assert!(Nested::<ControllerConfig>::parse("tonopah").is_none(), "two splits");
        assert!(Nested::<DetectorConfig>::parse("share:cut=0.56;intervals=8").is_some());
    }

    #[test]
    fn what_is_wrong_inside_is_named() {
        let instead = Nested::<DetectorConfig>::instead;
        assert_eq!(instead("share:cut=2").as_deref(), Some("cut of share: 0.5 to 0.9"));
        assert!(instead("rtt_gap:gp=5ms").is_some_and(|text| text.starts_with("parameters of rtt_gap: dominant, gap")));
        assert_eq!(instead("no_such"), None);
        assert_eq!(instead("share:cut=0.6"), None);
    }
}
