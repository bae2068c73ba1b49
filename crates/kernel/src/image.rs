//! The kernel in its compressed image.
//!
//! An emulated processor takes two seconds to unpack a kernel, so that is done once, by the host. `qemu` starts an unpacked kernel in which the
//! note `XEN_ELFNOTE_PHYS32_ENTRY` says where (PVH).
use crate::kernels::Missing;
use crate::tools::find;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// How compressed data begin, and the program that unpacks them.
const FORMATS: [(&[u8], &str); 2] = [(b"\x28\xb5\x2f\xfd", "zstd"), (b"\x02\x21\x4c\x18", "lz4")];
/// The length of the unpacked kernel, which follows the compressed data and counts as a part of them.
const LENGTH: usize = 4;
/// A note of ELF: the length of its name, that of its value, the kind `XEN_ELFNOTE_PHYS32_ENTRY`, the name.
const ENTRIES: [&[u8]; 2] = [b"\x04\0\0\0\x04\0\0\0\x12\0\0\0Xen\0", b"\x04\0\0\0\x08\0\0\0\x12\0\0\0Xen\0"];

/// Writes the kernel of a compressed image, or says why it stays compressed.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn unpack(image: &Path, into: &Path) -> Result<Option<String>, Missing> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| Missing(format!("{path}: {error}"))
    };
    let bytes = fs::read(image).map_err(failed(image))?;
    let Some((packed, name)) = packed(&bytes) else { return Ok(Some("its format is not known".into())) };
    let Some(program) = find(name) else { return Ok(Some(format!("there is no program `{name}`"))) };
    let payload = into.with_extension("packed");
    fs::write(&payload, packed).map_err(failed(&payload))?;
    let input = File::open(&payload).map_err(failed(&payload))?;
    let output = File::create(into).map_err(failed(into))?;
    let status = Command::new(&program).arg("-dc").stdin(input).stdout(output).stderr(Stdio::null()).status();
    let status = status.map_err(failed(&program))?;
    fs::remove_file(&payload).map_err(failed(&payload))?;
    let lacks = match status.success() {
        true if has_entry(&fs::read(into).map_err(failed(into))?) => return Ok(None),
        true => "qemu could not start it otherwise".to_owned(),
        false => format!("`{name}` fails"),
    };
    fs::remove_file(into).map_err(failed(into))?;
    Ok(Some(lacks))
}

/// The compressed kernel in an image, and the program that unpacks it (Linux, Documentation/arch/x86/boot.rst: `setup_sects`, `payload_offset`
/// and `payload_length`, in every image since 2008).
fn packed(image: &[u8]) -> Option<(&[u8], &'static str)> {
    const SECTOR: usize = 512;
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    let sectors = match usize::from(*image.get(0x1f1)?) {
        0 => 4,
        sectors => sectors,
    };
    let start = ((1 + sectors) * SECTOR).checked_add(word(0x248)?)?;
    let packed = image.get(start..start.checked_add(word(0x24c)?.checked_sub(LENGTH)?)?)?;
    let (_, program) = FORMATS.into_iter().find(|(magic, _)| packed.starts_with(magic))?;
    Some((packed, program))
}

fn has_entry(kernel: &[u8]) -> bool {
    kernel.starts_with(b"\x7fELF") && ENTRIES.iter().any(|entry| kernel.windows(entry.len()).any(|at| at == *entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image with one sector of set-up code and this payload, 16 bytes after it.
    fn image(payload: &[u8], length: u32) -> Vec<u8> {
        let mut image = vec![0; 0x400];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&length.to_le_bytes());
        image.extend([0; 16]);
        image.extend(payload);
        image
    }

    #[test]
    fn the_payload_is_where_the_header_says() {
        let payload = b"\x28\xb5\x2f\xfdabcd\x0a\0\0\0rest";
        assert_eq!(packed(&image(payload, 12)), Some((&b"\x28\xb5\x2f\xfdabcd"[..], "zstd")));
        assert_eq!(packed(&image(b"\x1f\x8b\x08abcd\0\0\0\0", 11)), None, "gzip is not among the formats");
        for length in [3, 100, u32::MAX] {
            assert_eq!(packed(&image(payload, length)), None, "{length} bytes");
        }
        assert_eq!(packed(b""), None);
    }

    #[test]
    fn a_kernel_without_the_note_is_not_started() {
        assert!(has_entry(b"\x7fELF...\x04\0\0\0\x04\0\0\0\x12\0\0\0Xen\0\x20\xbf\x8a\x03"));
        assert!(!has_entry(b"\x7fELF...\x04\0\0\0\x04\0\0\0\x06\0\0\0Xen\0"));
        assert!(!has_entry(b"MZ\x04\0\0\0\x04\0\0\0\x12\0\0\0Xen\0"));
    }

    #[test]
    fn a_kernel_is_unpacked() {
        let Some(zstd) = find("zstd") else {
            println!("skipped: there is no program `zstd`");
            return;
        };
        let folder = std::env::temp_dir().join(format!("narrows-image-unpacked-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (plain, image_file, unpacked) = (folder.join("plain"), folder.join("vmlinuz"), folder.join("vmlinux"));
        let kernel = [b"\x7fELF", ENTRIES[1], b"\x20\xbf\x8a\x03"].concat();
        for (kernel, starts) in [(kernel, true), (b"\x7fELF without a note".to_vec(), false)] {
            fs::write(&plain, &kernel).expect("a file");
            let mut payload = Command::new(&zstd).arg("-c").arg(&plain).output().expect("zstd starts").stdout;
            payload.extend(u32::try_from(kernel.len()).expect("it is short").to_le_bytes());
            let length = u32::try_from(payload.len()).expect("it is short");
            fs::write(&image_file, image(&payload, length)).expect("a file");
            assert_eq!(unpack(&image_file, &unpacked).map(|lacks| lacks.is_none()), Ok(starts));
            assert_eq!(fs::read(&unpacked).ok(), starts.then_some(kernel));
            let _ = fs::remove_file(&unpacked);
        }
        fs::remove_dir_all(&folder).expect("it was made");
    }

    #[test]
    fn what_is_no_image_stays_as_it_is() {
        let folder = std::env::temp_dir().join(format!("narrows-image-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (packed, unpacked) = (folder.join("vmlinuz"), folder.join("vmlinux"));
        // With or without a program that refuses these data.
        for bytes in [b"no image".to_vec(), image(b"\x28\xb5\x2f\xfdabcd\x0a\0\0\0", 12)] {
            fs::write(&packed, bytes).expect("a file");
            assert!(matches!(unpack(&packed, &unpacked), Ok(Some(_))));
            assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 1, "half a file is left");
        }
        fs::remove_dir_all(&folder).expect("it was made");
    }
}
