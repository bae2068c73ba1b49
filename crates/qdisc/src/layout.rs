//! Where a program's variables are in its memory, and their values.
//!
//! A layout is taken from the object when it is loaded and kept with the attachment, so that a later version of this program, with
//! other variables, still reads an earlier one's.
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Variables by name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Layout {
    /// The program's global variables.
    pub variables: BTreeMap<String, Variable>,
}

/// A variable, or an array of them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Variable {
    /// Where it begins, bytes.
    pub offset: u32,
    /// From an element to the next, bytes.
    pub stride: u32,
    /// Elements; 1 for what is no array.
    pub count: u32,
    /// The fields of an element: `sched.packets`, `decisions[2]`; without a name for a plain number.
    pub fields: BTreeMap<String, Field>,
}

/// A number in an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Field {
    /// Where it begins, bits.
    pub bit: u32,
    /// Its width, bits.
    pub bits: u32,
}

/// A copy of a program's memory.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    /// Where the variables are.
    pub layout: &'a Layout,
    /// The copy.
    pub bytes: &'a [u8],
}

impl Memory<'_> {
    /// A number of a variable that is no array.
    ///
    /// # Errors
    /// See [`Memory::element`].
    pub fn value(&self, variable: &str, field: &str) -> Result<u64, String> {
        self.element(variable, 0, field)
    }

    /// A number of an array's element.
    ///
    /// # Errors
    /// Names what the program does not have.
    pub fn element(&self, variable: &str, index: u32, field: &str) -> Result<u64, String> {
        let missing = || format!("the BPF program that is attached has no `{variable}[{index}].{field}`");
        let place = self.layout.variables.get(variable).filter(|place| index < place.count).ok_or_else(missing)?;
        let found = place.fields.get(field).ok_or_else(missing)?;
        let start = u64::from(place.offset) + u64::from(place.stride) * u64::from(index);
        let first = usize::try_from(start + u64::from(found.bit / 8)).map_err(|_| missing())?;
        let shift = found.bit % 8;
        let len = (shift + found.bits).div_ceil(8) as usize;
        let bytes = self.bytes.get(first..first + len).filter(|_| len <= 8 && found.bits > 0).ok_or_else(missing)?;
        let mut word = [0; 8];
        word[..len].copy_from_slice(bytes);
        // The objects are for machines whose words begin with the lowest byte.
        let value = u64::from_le_bytes(word) >> shift;
        Ok(if found.bits < 64 { value & ((1 << found.bits) - 1) } else { value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let field = |bit, bits| Field { bit, bits };
        let flow = BTreeMap::from([
            ("packets".into(), field(0, 32)),
            ("known".into(), field(33, 1)),
            ("n".into(), field(34, 3)),
        ]);
        let flows = Variable { offset: 8, stride: 8, count: 2, fields: flow };
        let sent = Variable { offset: 0, stride: 8, count: 1, fields: BTreeMap::from([(String::new(), field(0, 64))]) };
        Layout { variables: BTreeMap::from([("flows".into(), flows), ("sent".into(), sent)]) }
    }

    #[test]
    fn numbers_and_bits_are_read() {
        let mut bytes = u64::MAX.to_le_bytes().to_vec();
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([2, 1, 0, 0, 0b0001_0110, 0, 0, 0]);
        let layout = layout();
        let memory = Memory { layout: &layout, bytes: &bytes };
        assert_eq!(memory.value("sent", ""), Ok(u64::MAX));
        assert_eq!(memory.element("flows", 0, "packets"), Ok(1));
        assert_eq!(memory.element("flows", 1, "packets"), Ok(258));
        assert_eq!(memory.element("flows", 1, "known"), Ok(1));
        assert_eq!(memory.element("flows", 1, "n"), Ok(5));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let layout = layout();
        let short = Memory { layout: &layout, bytes: &[0; 20] };
        assert!(short.element("flows", 1, "known").is_err(), "beyond the copy's end");
        assert!(short.element("flows", 2, "packets").is_err(), "beyond the array's end");
        assert_eq!(
            short.value("tokens", "level"),
            Err("the BPF program that is attached has no `tokens[0].level`".to_owned())
        );
    }
}
