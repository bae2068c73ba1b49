//! The BPF programs: opened, given their constants, loaded, registered and pinned.
use crate::QdiscError;
use crate::constants::Program;
use crate::layout::{Field, Layout, Variable};
use crate::{machine, names};
use libbpf_rs::btf::types::{Array, DataSec, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, BtfKind, BtfType, HasSize};
use libbpf_rs::{
    ErrorKind, Link, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject, PrintLevel, set_print,
};
use narrows_core::Rate;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The programs by name.
const OBJECTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The files under an attachment's folder: the registration, the program's variables and the shaper's rate.
const LINK: &str = "link";
const MEMORY: &str = "memory";
const RATE: &str = "rate";

/// A qdisc that the kernel knows by name. It is forgotten when the last one of this value and its pins is gone.
pub(super) struct Registered {
    object: Object,
    link: Link,
    /// Its name.
    pub(super) id: String,
}

/// Loads a program and registers it under the first name that nobody has.
pub(super) fn register(program: &Program, index: u32) -> Result<Registered, QdiscError> {
    let mut ids = names::ids(program.name, index);
    loop {
        let Some(id) = ids.next() else {
            return Err(QdiscError::Failed(format!(
                "the kernel has every name for `{}` on this interface",
                program.name
            )));
        };
        let mut object = load(program, &id)?;
        let mut maps = object.maps_mut();
        let ops = maps.find(|map| map.map_type() == MapType::StructOps);
        let registered = ops.ok_or_else(|| broken(program, "has no Qdisc_ops"))?.attach_struct_ops();
        drop(maps);
        match registered {
            Ok(link) => return Ok(Registered { object, link, id }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(explained(&format!("register the qdisc {id}"), &error)),
        }
    }
}

impl Registered {
    /// Keeps the registration and the program's memory in a folder of the kind `bpf`, when this process has ended.
    pub(super) fn pin(&mut self, folder: &Path) -> Result<(), QdiscError> {
        let failed = |error: &dyn std::fmt::Display| QdiscError::failed(&format!("pin in {}", folder.display()), error);
        fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        for (section, file) in [(SECTION, MEMORY), (RATE_SECTION, RATE)] {
            let map = self.object.maps_mut().find(|map| map.name().as_encoded_bytes().ends_with(section.as_bytes()));
            let mut map = map.ok_or_else(|| QdiscError::Failed(format!("the BPF program has no {section}")))?;
            map.pin(folder.join(file)).map_err(|error| failed(&error))?;
        }
        self.link.pin(folder.join(LINK)).map_err(|error| failed(&error))
    }
}

/// Removes the registration and the pins of a folder, as far as they are there.
pub(super) fn unpin(folder: &Path) -> io::Result<()> {
    let link = folder.join(LINK);
    if link.exists() {
        // At once: when the last reference goes, the kernel does it a little later.
        if let Ok(link) = Link::open(&link) {
            let _ = link.detach();
        }
        fs::remove_file(&link)?;
    }
    for path in [folder.join(MEMORY), folder.join(RATE), folder.to_owned()] {
        let removed = if path == folder { fs::remove_dir(&path) } else { fs::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// A copy of a program's variables.
pub(super) fn memory(folder: &Path) -> Result<Vec<u8>, QdiscError> {
    value(&folder.join(MEMORY))
}

/// The shaper's rate, bit/s; zero for none. `None` for a program of an earlier version, whose rate cannot change.
pub(super) fn rate(folder: &Path) -> Option<u64> {
    let bytes = value(&folder.join(RATE)).ok()?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

fn value(path: &Path) -> Result<Vec<u8>, QdiscError> {
    let failed = |error: &dyn std::fmt::Display| QdiscError::failed(&format!("read {}", path.display()), error);
    let map = MapHandle::from_pinned_path(path).map_err(|error| failed(&error))?;
    let found = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(|error| failed(&error))?;
    found.ok_or_else(|| failed(&"it is empty"))
}

/// The rate of a program's shaper, to change it while packets pass.
pub struct RateMap(MapHandle);

impl RateMap {
    pub(super) fn open(folder: &Path) -> Result<RateMap, QdiscError> {
        let path = folder.join(RATE);
        let map = MapHandle::from_pinned_path(&path);
        map.map(RateMap).map_err(|error| QdiscError::failed(&format!("open {}", path.display()), error))
    }

    /// Sets it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set(&self, rate: Rate) -> Result<(), QdiscError> {
        let written = self.0.update(&0u32.to_ne_bytes(), &rate.as_bps().to_ne_bytes(), MapFlags::ANY);
        written.map_err(|error| QdiscError::failed("change the shaper's rate", error))
    }
}

/// Where a program's variables are.
pub(super) fn layout(program: &Program) -> Result<Layout, QdiscError> {
    let btf = btf(program)?;
    let mut variables = BTreeMap::new();
    for (name, offset, ty) in section(&btf, SECTION) {
        let (element, stride, count) = match ty.kind() {
            BtfKind::Array => {
                let array = Array::try_from(ty).map_err(|_| broken(program, "has an array that is none"))?;
                let element = array.contained_type().skip_mods_and_typedefs();
                (element, width(&element) / 8, u32::try_from(array.capacity()).unwrap_or(u32::MAX))
            }
            _ => (ty, 0, 1),
        };
        let mut fields = BTreeMap::new();
        flatten(&btf, element, String::new(), 0, &mut fields);
        variables.insert(name, Variable { offset, stride, count, fields });
    }
    Ok(Layout { variables })
}

/// Sections of the object: variables that begin as zero, the options, and the shaper's rate.
const SECTION: &str = ".bss";
const OPTIONS: &str = ".rodata";
const RATE_SECTION: &str = ".data.rate";

fn broken(program: &Program, fault: &str) -> QdiscError {
    QdiscError::Failed(format!("the BPF program {} of this build {fault}", program.name))
}

fn bytes(program: &Program) -> Result<&'static [u8], QdiscError> {
    let found = OBJECTS.iter().find(|object| object.0 == program.name);
    found.map(|object| object.1).ok_or_else(|| broken(program, "is missing"))
}

fn btf(program: &Program) -> Result<Btf<'static>, QdiscError> {
    let btf = Btf::from_raw(program.name, bytes(program)?)
        .map_err(|error| QdiscError::failed("read the BPF program", error))?;
    btf.ok_or_else(|| broken(program, "has no BTF"))
}

fn load(program: &Program, id: &str) -> Result<Object, QdiscError> {
    let object = prepared(program, id)?;
    object.load().map_err(|error| explained(&format!("load the BPF program {}", program.name), &error))
}

/// A program with its constants and its name, not yet loaded.
fn prepared(program: &Program, id: &str) -> Result<OpenObject, QdiscError> {
    collect_log();
    let object = ObjectBuilder::default().open_memory(bytes(program)?);
    let mut object = object.map_err(|error| explained(&format!("open the BPF program {}", program.name), &error))?;
    let btf = btf(program)?;
    let options: BTreeMap<String, (u32, BtfType<'_>)> =
        section(&btf, OPTIONS).map(|(name, offset, ty)| (name, (offset, ty))).collect();
    let (mut has_options, mut has_name, mut has_rate) = (false, false, false);
    for mut map in object.maps_mut() {
        let ends_with = |section: &str| map.name().as_encoded_bytes().ends_with(section.as_bytes());
        let (is_options, is_rate) = (ends_with(OPTIONS), ends_with(RATE_SECTION));
        let is_ops = map.map_type() == MapType::StructOps;
        let Some(memory) = map.initial_value_mut() else { continue };
        if is_ops {
            // Its first field (`kernel.bpf.h`).
            let field = memory.get_mut(..NAME_LEN).filter(|_| id.len() < NAME_LEN);
            let field = field.ok_or_else(|| broken(program, "has no room for a name"))?;
            field.fill(0);
            field[..id.len()].copy_from_slice(id.as_bytes());
            has_name = true;
        } else if is_rate && memory.len() >= size_of::<u64>() {
            memory[..size_of::<u64>()].copy_from_slice(&program.rate_bit_s.to_ne_bytes());
            has_rate = true;
        } else if is_options {
            for (name, value) in &program.constants {
                let value = value.bytes();
                let place = options.get(name).filter(|place| width(&place.1) as usize == value.len() * 8);
                let start = place.map(|place| place.0 as usize);
                let place = start.and_then(|start| memory.get_mut(start..start + value.len()));
                let missing = || broken(program, &format!("has no option {name} of this size"));
                place.ok_or_else(missing)?.copy_from_slice(&value);
            }
            if let Some((at, _)) = options.get(NAME_FLOWS)
                && let Some(byte) = memory.get_mut(*at as usize)
            {
                *byte = u8::from(!machine::is_locked_down());
            }
            has_options = true;
        }
    }
    if !has_options || !has_name || !has_rate {
        return Err(broken(program, "has no options, no rate or no Qdisc_ops"));
    }
    Ok(object)
}

/// The option of programs that remember flows' addresses, which they read from packets.
const NAME_FLOWS: &str = "name_flows";
/// The length of a qdisc's name in the kernel (IFNAMSIZ).
const NAME_LEN: usize = 16;

/// The variables of a section: name, offset and type.
fn section<'a>(btf: &'a Btf<'static>, section: &str) -> impl Iterator<Item = (String, u32, BtfType<'a>)> + use<'a> {
    let found = btf.type_by_name::<DataSec<'a>>(section);
    let variables: Vec<_> =
        found.iter().flat_map(|found| found.iter().map(|entry| (entry.ty, entry.offset)).collect::<Vec<_>>()).collect();
    variables.into_iter().filter_map(|(id, offset)| {
        let variable = btf.type_by_id::<Var<'a>>(id)?;
        // libbpf fills in the offsets of those that are not static.
        if variable.linkage() == libbpf_rs::btf::types::Linkage::Static {
            return None;
        }
        let name = variable.name()?.to_str()?.to_owned();
        let ty = libbpf_rs::btf::ReferencesType::referenced_type(&variable);
        Some((name, offset, ty.skip_mods_and_typedefs()))
    })
}

/// The numbers of a type, with their names and places. Pointers and unions are left out: there are none to show.
fn flatten(btf: &Btf<'_>, ty: BtfType<'_>, name: String, bit: u32, fields: &mut BTreeMap<String, Field>) {
    match ty.kind() {
        BtfKind::Int | BtfKind::Enum | BtfKind::Enum64 => {
            fields.insert(name, Field { bit, bits: width(&ty) });
        }
        BtfKind::Array => {
            let Ok(array) = Array::try_from(ty) else { return };
            let element = array.contained_type().skip_mods_and_typedefs();
            for i in 0..array.capacity() as u32 {
                flatten(btf, element, format!("{name}[{i}]"), bit + i * width(&element), fields);
            }
        }
        BtfKind::Struct => {
            let Ok(composite) = Struct::try_from(ty) else { return };
            for member in composite.iter() {
                let Some(part) = member.name.and_then(|name| name.to_str()) else { continue };
                let name = if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
                let Some(ty) = btf.type_by_id::<BtfType<'_>>(member.ty) else { continue };
                match member.attr {
                    MemberAttr::Normal { offset } => {
                        flatten(btf, ty.skip_mods_and_typedefs(), name, bit + offset, fields);
                    }
                    MemberAttr::BitField { size, offset } => {
                        fields.insert(name, Field { bit: bit + offset, bits: size.into() });
                    }
                }
            }
        }
        _ => {}
    }
}

/// Bits of a value; zero for a type that has no size.
fn width(ty: &BtfType<'_>) -> u32 {
    let bytes = match ty.kind() {
        BtfKind::Array => {
            let array = Array::try_from(*ty).ok();
            return array
                .map_or(0, |array| width(&array.contained_type().skip_mods_and_typedefs()) * array.capacity() as u32);
        }
        BtfKind::Int => libbpf_rs::btf::types::Int::try_from(*ty).map_or(0, |ty| ty.size()),
        BtfKind::Enum => libbpf_rs::btf::types::Enum::try_from(*ty).map_or(0, |ty| ty.size()),
        BtfKind::Enum64 => libbpf_rs::btf::types::Enum64::try_from(*ty).map_or(0, |ty| ty.size()),
        BtfKind::Struct => Struct::try_from(*ty).map_or(0, |ty| ty.size()),
        _ => 0,
    };
    u32::try_from(bytes * 8).unwrap_or(0)
}

/// What libbpf and the kernel's verifier say, for messages.
static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Lines of it that a message shows.
const SHOWN: usize = 4;

fn collect_log() {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).clear();
    set_print(Some((PrintLevel::Warn, |_, text| {
        let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
    })));
}

/// An error, with the end of what libbpf said.
fn explained(doing: &str, error: &libbpf_rs::Error) -> QdiscError {
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let last = log[log.len().saturating_sub(SHOWN)..].join(" | ");
    QdiscError::Failed(format!("cannot {doing}: {error}{}", if last.is_empty() { last } else { format!(" ({last})") }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attachment::Attachment;
    use crate::attachment::tests::attachment;
    use crate::constants::{Frames, PROGRAMS, Shaper};
    use crate::layout::Memory;
    use crate::snapshot::Snapshot;
    use narrows_core::queue::QueueConfig;
    use narrows_core::registry::Registered;

    fn program(name: &str) -> Program {
        let queue = QueueConfig::named(name).expect("a queue");
        let shaper = Shaper { rate: Some(Rate::mbit(10)), overhead: -4 };
        Program::new(&queue, &shaper, Frames { mtu: 1500, header: 14 }).expect("a program")
    }

    #[test]
    fn every_constant_and_the_name_are_in_the_object() {
        for name in PROGRAMS {
            let program = program(name);
            let object = prepared(&program, "nw_x.7").expect("prepared");
            let btf = btf(&program).expect("BTF");
            let options: BTreeMap<_, _> = section(&btf, OPTIONS).map(|(name, at, _)| (name, at as usize)).collect();
            for map in object.maps() {
                let Some(memory) = map.initial_value() else { continue };
                if map.map_type() == MapType::StructOps {
                    assert_eq!(&memory[..8], b"nw_x.7\0\0", "{name}");
                } else if map.name().as_encoded_bytes().ends_with(RATE_SECTION.as_bytes()) {
                    assert_eq!(memory, 10_000_000u64.to_ne_bytes(), "{name}: alone in its map");
                } else if map.name().as_encoded_bytes().ends_with(OPTIONS.as_bytes()) {
                    // Each option has its own place: together they are what was asked for.
                    for (option, value) in &program.constants {
                        let (at, value) = (options[option.as_str()], value.bytes());
                        assert_eq!(memory[at..at + value.len()], value, "{name}: {option}");
                    }
                }
            }
            let all: Vec<&str> = options.keys().map(String::as_str).filter(|name| *name != NAME_FLOWS).collect();
            assert_eq!(all.len(), program.constants.len(), "{name}: {all:?}");
        }
    }

    #[test]
    fn an_option_that_the_object_lacks_is_an_error() {
        let mut program = program("cp");
        program.constants.push(("opt_colour".to_owned(), crate::constants::Constant::U32(1)));
        let message = prepared(&program, "nw_x.7").expect_err("refused").to_string();
        assert!(message.contains("opt_colour"), "{message}");
        assert!(prepared(&self::program("cp"), "a_name_of_16_char").is_err());
    }

    #[test]
    fn every_figure_is_in_the_programs_memory() {
        for name in PROGRAMS {
            let layout = layout(&program(name)).expect("a layout");
            let end = |variable: &Variable| {
                let element = variable.fields.values().map(|field| (field.bit + field.bits).div_ceil(8)).max();
                variable.offset + variable.stride * (variable.count - 1) + element.unwrap_or(0)
            };
            let len = layout.variables.values().map(end).max().expect("variables");
            let memory = Memory { layout: &layout, bytes: &vec![0; len as usize] };
            let attachment = Attachment { program: (*name).into(), layout: layout.clone(), ..attachment() };
            let snapshot = Snapshot::new(&attachment, true, &memory, 0).expect("all figures");
            let shown = [snapshot.cocoa.is_some(), snapshot.cp.is_some(), snapshot.lfq.is_some()];
            assert_eq!(shown, ["cocoa", "cp", "lfq"].map(|program| program == *name));
            // Variables do not overlap.
            let mut places: Vec<(u32, u32)> = layout.variables.values().map(|v| (v.offset, end(v))).collect();
            places.sort_unstable();
            assert!(places.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{name}: {places:?}");
        }
    }
}
