//! Environments for learning: many simulations that a learner advances together, one interval per step.
//!
//! Arrays cross the border as bytes in the machine's order, once for all environments. Threads step the environments without the
//! interpreter's lock; what an environment does depends on its own seed and actions only.
use crate::errors;
use env::{Env, FACTS, Shown, Task};
use narrows_sim::RunError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::sync::{Arc, Mutex};

mod agent;
mod buffer;
mod env;
pub(crate) mod monitor;
mod setup;

/// Environments per turn of a thread.
const CHUNK: usize = 8;

/// The arrays of a step: observations (float32), rewards (float64), ends of episodes (bool), facts (float32).
type Arrays<'py> = (Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, Bound<'py, PyByteArray>);

/// Names of the features that LFQ's policy sees.
pub(crate) fn features() -> Vec<&'static str> {
    narrows_core::queue::lfq::Features::RANGES.iter().map(|&(name, _)| name).collect()
}

/// Several environments of one kind.
#[pyclass(name = "Envs", module = "narrows._narrows")]
pub(crate) struct Envs {
    task: Arc<Task>,
    /// Behind a lock because an environment can be sent between threads, not shared by them. Nobody waits for it.
    envs: Mutex<Vec<Env>>,
    count: usize,
    threads: usize,
}

#[pymethods]
impl Envs {
    #[new]
    fn new(py: Python<'_>, setup: setup::Setup, count: usize, threads: usize) -> PyResult<Envs> {
        let task = Arc::new(setup.task().map_err(|error| errors::scenario(py, &error))?);
        let envs = Mutex::new((0..count).map(|_| Env::new(Arc::clone(&task))).collect());
        Ok(Envs { task, envs, count, threads: threads.max(1) })
    }

    /// Numbers in an observation.
    #[getter]
    fn width(&self) -> usize {
        self.task.width()
    }

    /// Begins an episode in each environment that has a seed or, without seeds, in every one.
    fn reset<'py>(&mut self, py: Python<'py>, seeds: Vec<Option<u64>>) -> PyResult<Arrays<'py>> {
        if let Ok(envs) = self.envs.get_mut() {
            for (env, seed) in envs.iter_mut().zip(seeds) {
                if let Some(seed) = seed {
                    env.seed(seed);
                }
            }
        }
        self.together(py, |env, _| env.reset(), &[])
    }

    /// One interval in each environment, with its action; one whose episode has ended begins the next instead.
    fn step<'py>(&mut self, py: Python<'py>, actions: &[u8]) -> PyResult<Arrays<'py>> {
        let numbers: Vec<f32> = actions.as_chunks::<4>().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect();
        if numbers.len() != self.count {
            let message = format!("{} numbers; allowed: one for each of {} environments", numbers.len(), self.count);
            return Err(errors::argument(py, "actions", message));
        }
        if let Some(action) = numbers.iter().find(|action| !action.is_finite()) {
            return Err(errors::argument(py, "actions", format!("{action}; allowed: finite numbers")));
        }
        self.together(py, |env, action| env.step(action), &numbers)
    }

    /// The conditions of each environment's episode: rate (bit/s), base RTT (s), buffer (packets), loss (share).
    fn conditions(&self) -> Vec<(f64, f64, u32, f64)> {
        self.envs.lock().map(|envs| envs.iter().map(Env::conditions).collect()).unwrap_or_default()
    }
}

impl Envs {
    /// Does something in every environment, on several threads.
    fn together<'py>(
        &mut self,
        py: Python<'py>,
        act: impl Fn(&mut Env, f32) -> Result<Shown, RunError> + Sync,
        actions: &[f32],
    ) -> PyResult<Arrays<'py>> {
        let (count, width, threads) = (self.count, self.task.width(), self.threads);
        let (mut seen, mut shown) = (vec![0_f32; count * width], vec![Shown::default(); count]);
        let failed: Mutex<Option<RunError>> = Mutex::new(None);
        let envs =
            self.envs.get_mut().map_err(|_| errors::failed(py, "an earlier step ended by a fault of Narrows"))?;
        py.detach(|| {
            let parts = envs.chunks_mut(CHUNK).zip(seen.chunks_mut(CHUNK * width)).zip(shown.chunks_mut(CHUNK));
            // Each thread has a part of its own, the same one in every step, so that environments stay in a core's cache; then it helps
            // the others.
            let mut parts: Vec<_> = parts.enumerate().collect();
            // More threads than chunks would have nothing to do.
            let threads = threads.min(parts.len()).max(1);
            let share = parts.len().div_ceil(threads).max(1);
            let mut shares = Vec::with_capacity(threads);
            while !parts.is_empty() {
                let rest = parts.split_off(share.min(parts.len()));
                shares.push(Mutex::new(std::mem::replace(&mut parts, rest)));
            }
            let work = |own: usize| {
                let from = |n: usize| shares[(own + n) % shares.len()].lock().ok().and_then(|mut share| share.pop());
                let next = || (0..shares.len()).find_map(from);
                while let Some((n, ((envs, seen), shown))) = next() {
                    let places = envs.iter_mut().zip(seen.chunks_mut(width)).zip(shown);
                    for (k, ((env, seen), shown)) in places.enumerate() {
                        match act(env, actions.get(n * CHUNK + k).copied().unwrap_or(0.0)) {
                            Ok(made) => *shown = made,
                            Err(ended) => {
                                if let Ok(mut failed) = failed.lock() {
                                    failed.get_or_insert(ended);
                                }
                            }
                        }
                        env.observe(seen);
                    }
                }
            };
            std::thread::scope(|scope| {
                let work = &work;
                for own in 1..shares.len() {
                    scope.spawn(move || work(own));
                }
                work(0);
            });
        });
        if let Some(ended) = failed.into_inner().ok().flatten() {
            return Err(errors::failed(py, &ended.to_string()));
        }
        let bytes = |numbers: &[f32]| -> Vec<u8> { numbers.iter().flat_map(|number| number.to_ne_bytes()).collect() };
        let rewards: Vec<u8> = shown.iter().flat_map(|shown| shown.reward.to_ne_bytes()).collect();
        let ends: Vec<u8> = shown.iter().map(|shown| u8::from(shown.ended)).collect();
        let facts: Vec<f32> = (0..FACTS).flat_map(|n| shown.iter().map(move |shown| shown.facts[n])).collect();
        Ok((
            PyByteArray::new(py, &bytes(&seen)),
            PyByteArray::new(py, &rewards),
            PyByteArray::new(py, &ends),
            PyByteArray::new(py, &bytes(&facts)),
        ))
    }
}
