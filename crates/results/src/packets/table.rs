//! The packets of a run as Parquet: one row per packet, in the order in which they were sent.
use super::{ByPacket, PacketLog, What};
use crate::folder::{PACKETS, ResultError};
use crate::table::{GROUP, properties};
use narrows_core::{Ecn, Time};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// Maximum number of hops; the table has three columns for each hop.
pub const MAX_HOPS: usize = 256;

/// Writes `packets.parquet` to a folder that does not have one.
///
/// # Errors
/// The file cannot be written.
pub fn write_to(dir: &Path, log: &PacketLog) -> std::result::Result<(), ResultError> {
    let path = dir.join(PACKETS);
    let fault =
        |error: &dyn std::fmt::Display| ResultError { path: path.clone(), message: format!("cannot write: {error}") };
    let file = narrows_files::create_new(&path).map_err(|error| fault(&error))?;
    let file = write(log, BufWriter::new(file)).map_err(|error| fault(&error))?;
    let file = file.into_inner().map_err(|error| fault(&error))?;
    file.sync_all().map_err(|error| fault(&error))
}

/// Writes the table.
///
/// # Errors
/// The writer's.
pub fn write<W: Write + Send>(log: &PacketLog, to: W) -> Result<W> {
    let hops: Vec<usize> = (0..log.hops.len()).filter(|&hop| log.hops[hop].used).collect();
    let mut writer = SerializedFileWriter::new(to, schema(log, &hops)?, Arc::new(properties()))?;
    let events = log.by_packet();
    let mut first = 0;
    while first < log.packets.len() {
        let rows = first..log.packets.len().min(first + GROUP);
        write_group(writer.next_row_group()?, &Group::of(log, &events, &hops, rows.clone()))?;
        first = rows.end;
    }
    writer.into_inner()
}

fn schema(log: &PacketLog, hops: &[usize]) -> Result<TypePtr> {
    let column = |name: &str, physical, repetition| {
        let text = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let column = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        column.with_logical_type(text).build().map(Arc::new)
    };
    let (always, sometimes) = (Repetition::REQUIRED, Repetition::OPTIONAL);
    let mut fields = vec![
        column("flow", Physical::BYTE_ARRAY, always)?,
        column("kind", Physical::BYTE_ARRAY, always)?,
        column("subflow", Physical::INT32, always)?,
        column("number", Physical::INT64, always)?,
        column("sequence_bytes", Physical::INT64, sometimes)?,
        column("size_bytes", Physical::INT32, always)?,
        column("payload_bytes", Physical::INT32, always)?,
        column("retransmission", Physical::BOOLEAN, always)?,
        column("ecn", Physical::BYTE_ARRAY, always)?,
        column("marked", Physical::BOOLEAN, always)?,
        column("sent_s", Physical::DOUBLE, always)?,
    ];
    for &hop in hops {
        for event in ["enqueued_s", "dequeued_s", "forwarded_s"] {
            fields.push(column(&format!("{}_{event}", log.hops[hop].name), Physical::DOUBLE, sometimes)?);
        }
    }
    fields.push(column("arrived_s", Physical::DOUBLE, sometimes)?);
    fields.push(column("dropped_s", Physical::DOUBLE, sometimes)?);
    fields.push(column("drop_hop", Physical::BYTE_ARRAY, sometimes)?);
    fields.push(column("drop_reason", Physical::BYTE_ARRAY, sometimes)?);
    Ok(Arc::new(Type::group_type_builder("packets").with_fields(fields).build()?))
}

/// The rows of a group, column by column; columns of hops in the order of their hops.
#[derive(Default)]
struct Group {
    flow: Vec<ByteArray>,
    kind: Vec<ByteArray>,
    subflow: Vec<i32>,
    number: Vec<i64>,
    sequence: Vec<Option<i64>>,
    size: Vec<i32>,
    payload: Vec<i32>,
    retransmission: Vec<bool>,
    ecn: Vec<ByteArray>,
    marked: Vec<bool>,
    sent: Vec<f64>,
    hops: Vec<Vec<Option<f64>>>,
    arrived: Vec<Option<f64>>,
    dropped: Vec<Option<f64>>,
    drop_hop: Vec<Option<ByteArray>>,
    drop_reason: Vec<Option<ByteArray>>,
}

impl Group {
    fn of(log: &PacketLog, events: &ByPacket<'_>, hops: &[usize], rows: std::ops::Range<usize>) -> Group {
        let names: Vec<ByteArray> = log.flows.iter().map(|flow| text(&flow.name)).collect();
        let mut group = Group { hops: vec![Vec::new(); 3 * hops.len()], ..Group::default() };
        let place = |hop: u16| hops.binary_search(&usize::from(hop)).unwrap_or_default();
        for index in rows {
            let packet = &log.packets[index];
            group.flow.push(names[packet.flow as usize].clone());
            group.kind.push(text(packet.kind.name()));
            group.subflow.push(i32::from(packet.subflow));
            group.number.push(packet.number as i64);
            group.sequence.push(log.stream_offset(packet).map(|offset| offset as i64));
            group.size.push(packet.ip_len as i32);
            group.payload.push(packet.payload as i32);
            group.retransmission.push(packet.retransmission);
            group.ecn.push(text(codepoint(packet.ecn)));
            group.marked.push(false);
            group.sent.push(packet.sent.as_secs_f64());
            let missing = |column: &mut Vec<Option<f64>>| column.push(None);
            group.hops.iter_mut().chain([&mut group.arrived, &mut group.dropped]).for_each(missing);
            group.drop_hop.push(None);
            group.drop_reason.push(None);
            for event in events.events(index) {
                group.event(log, event.at, event.what, place);
            }
        }
        group
    }

    /// Adds an event of the last row.
    fn event(&mut self, log: &PacketLog, at: Time, what: What, place: impl Fn(u16) -> usize) {
        let at = Some(at.as_secs_f64());
        let set = |column: &mut Vec<Option<f64>>| column.last_mut().map(|last| *last = at).unwrap_or_default();
        match what {
            What::Sent => {}
            What::Enqueued(hop) => set(&mut self.hops[3 * place(hop)]),
            What::Dequeued(hop) => set(&mut self.hops[3 * place(hop) + 1]),
            What::Forwarded(hop) => set(&mut self.hops[3 * place(hop) + 2]),
            What::Arrived => set(&mut self.arrived),
            What::Marked(_) => self.marked.last_mut().map(|last| *last = true).unwrap_or_default(),
            What::Vanished(hop) => {
                let name = text(&log.hops[usize::from(hop)].name);
                self.drop_hop.last_mut().map(|last| *last = Some(name)).unwrap_or_default();
            }
            What::Dropped(hop, reason) => {
                set(&mut self.dropped);
                let name = text(&log.hops[usize::from(hop)].name);
                self.drop_hop.last_mut().map(|last| *last = Some(name)).unwrap_or_default();
                self.drop_reason.last_mut().map(|last| *last = Some(text(reason.name()))).unwrap_or_default();
            }
        }
    }
}

fn write_group<W: Write + Send>(mut to: SerializedRowGroupWriter<'_, W>, group: &Group) -> Result<()> {
    always::<ByteArrayType, W>(&mut to, &group.flow)?;
    always::<ByteArrayType, W>(&mut to, &group.kind)?;
    always::<Int32Type, W>(&mut to, &group.subflow)?;
    always::<Int64Type, W>(&mut to, &group.number)?;
    sometimes::<Int64Type, W>(&mut to, &group.sequence)?;
    always::<Int32Type, W>(&mut to, &group.size)?;
    always::<Int32Type, W>(&mut to, &group.payload)?;
    always::<BoolType, W>(&mut to, &group.retransmission)?;
    always::<ByteArrayType, W>(&mut to, &group.ecn)?;
    always::<BoolType, W>(&mut to, &group.marked)?;
    always::<DoubleType, W>(&mut to, &group.sent)?;
    for column in group.hops.iter().chain([&group.arrived, &group.dropped]) {
        sometimes::<DoubleType, W>(&mut to, column)?;
    }
    sometimes::<ByteArrayType, W>(&mut to, &group.drop_hop)?;
    sometimes::<ByteArrayType, W>(&mut to, &group.drop_reason)?;
    to.close().map(drop)
}

/// Writes a column in which every row has a value.
fn always<T: DataType, W: Write + Send>(to: &mut SerializedRowGroupWriter<'_, W>, values: &[T::T]) -> Result<()> {
    let Some(mut column) = to.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

/// Writes a column in which rows may have no value.
fn sometimes<T: DataType, W: Write + Send>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    values: &[Option<T::T>],
) -> Result<()> {
    let Some(mut column) = to.next_column()? else { return Ok(()) };
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.iter().flatten().cloned().collect();
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

fn text(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}

fn codepoint(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "not_ect",
        Ecn::Ect0 => "ect0",
        Ecn::Ect1 => "ect1",
        Ecn::Ce => "ce",
    }
}
