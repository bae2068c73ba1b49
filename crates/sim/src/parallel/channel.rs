//! Channels between the threads of a run: they carry the packets of each window, and take empty buffers back.
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The sending end.
pub(super) struct Outlet<T> {
    full: SyncSender<Vec<T>>,
    empty: Receiver<Vec<T>>,
}

/// The receiving end.
pub(super) struct Inlet<T> {
    full: Receiver<Vec<T>>,
    empty: SyncSender<Vec<T>>,
}

/// The other thread has ended.
pub(super) struct Ended;

/// A channel for up to this number of windows.
pub(super) fn channel<T>(windows: usize) -> (Outlet<T>, Inlet<T>) {
    let (full, filled) = sync_channel(windows);
    // Another buffer may be in the channel and one with each thread, so there is always room to return one.
    let (empty, emptied) = sync_channel(windows + 2);
    (Outlet { full, empty: emptied }, Inlet { full: filled, empty })
}

impl<T> Outlet<T> {
    /// Sends the packets of a window, and leaves an empty buffer in their place. Waits if too many windows are in the channel.
    pub(super) fn send(&self, batch: &mut Vec<T>) -> Result<(), Ended> {
        let empty = self.empty.try_recv().unwrap_or_default();
        self.full.send(std::mem::replace(batch, empty)).map_err(|_| Ended)
    }

    /// Memory of the buffers that came back, bytes.
    pub(super) fn bytes(&self) -> usize {
        held(&self.empty)
    }
}

impl<T> Inlet<T> {
    /// Waits for the packets of the next window. The buffer goes back later with [`Self::give_back`].
    pub(super) fn receive(&self) -> Result<Vec<T>, Ended> {
        self.full.recv().map_err(|_| Ended)
    }

    /// Returns a buffer to the other thread.
    pub(super) fn give_back(&self, mut batch: Vec<T>) {
        batch.clear();
        // If the channel is full the buffer is freed.
        let _ = self.empty.try_send(batch);
    }

    /// Memory of the buffers that were not received, bytes.
    pub(super) fn bytes(&self) -> usize {
        held(&self.full)
    }
}

fn held<T>(channel: &Receiver<Vec<T>>) -> usize {
    channel.try_iter().map(|batch| batch.capacity() * size_of::<T>()).sum()
}
